//! Counters never go back. The kernel's totals may by a little, when a send that was
//! counted fails later on; a step back would look like a restart to Prometheus.

use std::collections::HashMap;

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

/// What every counter has shown so far.
#[derive(Debug, Default)]
pub(super) struct Floor {
    shown: HashMap<(String, Vec<(String, String)>), f64>,
}

impl Floor {
    /// Keeps every counter at what it has shown, until the true count passes that.
    pub(super) fn raise(&mut self, families: &mut [MetricFamily]) {
        for family in families {
            if family.get_field_type() != MetricType::COUNTER {
                continue;
            }
            let name = family.name().to_owned();
            for metric in family.mut_metric() {
                let key = (name.clone(), metric.get_label().iter().map(pair).collect());
                let shown = self.shown.entry(key).or_default();
                *shown = shown.max(metric.get_counter().get_value());
                show(metric, *shown);
            }
        }
    }
}

fn pair(label: &LabelPair) -> (String, String) {
    (label.name().to_owned(), label.value().to_owned())
}

fn show(metric: &mut Metric, value: f64) {
    let mut counter = metric.get_counter().clone();
    counter.set_value(value);
    metric.set_counter(counter);
}
