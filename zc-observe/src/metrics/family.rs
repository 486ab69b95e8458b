//! Building metric families sample by sample.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};
use zc_observe_ebpf::{BUCKETS, FIRST_BUCKET_LOG2};

use crate::snapshot;

/// Labels of one sample, in the order in which they are shown.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A family in the making.
#[derive(Debug)]
pub(super) struct Family {
    family: MetricFamily,
    samples: Vec<Metric>,
}

impl Family {
    pub(super) fn counter(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::COUNTER)
    }

    pub(super) fn gauge(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::GAUGE)
    }

    pub(super) fn histogram(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::HISTOGRAM)
    }

    fn new(name: &str, help: &str, kind: MetricType) -> Self {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        Self {
            family,
            samples: Vec::new(),
        }
    }

    /// Adds a sample of a counter or gauge.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the text format's numbers are f64"
    )]
    pub(super) fn add(&mut self, labels: Labels<'_>, value: u64) {
        self.add_f64(labels, value as f64);
    }

    /// Adds a sample of a counter or gauge, if the value is known.
    pub(super) fn add_known(&mut self, labels: Labels<'_>, value: Option<u64>) {
        if let Some(value) = value {
            self.add(labels, value);
        }
    }

    /// Adds a sample of a counter or gauge that is not a whole number.
    pub(super) fn add_f64(&mut self, labels: Labels<'_>, value: f64) {
        let mut metric = Metric::from_label(pairs(labels));
        if self.family.get_field_type() == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        self.samples.push(metric);
    }

    /// Adds a sample of a histogram. Its count is the sum of its buckets, whatever was
    /// added between the reading of the one and of the other.
    pub(super) fn add_times(&mut self, labels: Labels<'_>, times: &snapshot::Histogram) {
        let mut histogram = Histogram::default();
        let mut seen = 0_u64;
        let mut buckets = Vec::with_capacity(BUCKETS - 1);
        for (index, count) in times.buckets.iter().enumerate() {
            seen = seen.saturating_add(*count);
            // The last bucket has no upper bound; the encoder writes it as +Inf.
            if index < BUCKETS - 1 {
                let mut bucket = Bucket::default();
                bucket.set_cumulative_count(seen);
                bucket.set_upper_bound(upper_bound(index));
                buckets.push(bucket);
            }
        }
        histogram.set_bucket(buckets);
        histogram.set_sample_count(seen);
        histogram.set_sample_sum(times.sum.as_secs_f64());
        let mut metric = Metric::from_label(pairs(labels));
        metric.set_histogram(histogram);
        self.samples.push(metric);
    }

    /// The family, unless it has no sample.
    pub(super) fn build(mut self) -> Option<MetricFamily> {
        if self.samples.is_empty() {
            return None;
        }
        self.family.set_metric(self.samples);
        Some(self.family)
    }
}

/// Upper bound of a bucket in seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "powers of two up to 2^31 are exact"
)]
fn upper_bound(index: usize) -> f64 {
    (1_u64 << (FIRST_BUCKET_LOG2 as usize + index)) as f64 / 1e9
}

fn pairs(labels: Labels<'_>) -> Vec<LabelPair> {
    labels
        .iter()
        .map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        })
        .collect()
}
