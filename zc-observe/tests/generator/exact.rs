//! Over loopback: every send, notification and byte.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zc_observe::generator::{self, Counters, Engine, Family, Spec, Totals, Transport};

fn generate(spec: &Spec) -> Totals {
    generator::run(spec, &Counters::default(), &AtomicBool::new(false)).unwrap()
}

/// Everything was delivered, and on loopback every zero-copy send was copied.
#[track_caller]
fn assert_exact(spec: &Spec, totals: &Totals, sends: u64) {
    let zerocopy = spec.engine == Engine::Zerocopy;
    assert_eq!(totals.sends, sends, "{spec}");
    assert_eq!(totals.delivered_bytes, totals.bytes, "{spec}");
    let copied = if zerocopy { sends } else { 0 };
    assert_eq!(totals.completions_copied, copied, "{spec}");
    assert_eq!(totals.completions_zerocopy, 0, "{spec}");
    assert_eq!(totals.release.count, copied, "{spec}");
    assert_eq!(totals.unexpected, 0, "{spec}");
    assert_eq!(totals.verify_failures, 0, "{spec}");
}

#[test]
fn every_send_over_loopback_is_accounted_for() {
    for transport in [Transport::Tcp, Transport::Udp] {
        for family in [Family::V4, Family::V6] {
            for engine in [Engine::Copy, Engine::Zerocopy] {
                for size in [1, 1400, 4096, 30_000, 65_435] {
                    let spec = Spec {
                        engine,
                        size,
                        count: Some(4000),
                        ..Spec::new(transport, family)
                    };
                    let totals = generate(&spec);
                    // TCP may take a message in two sends if the receiver is slow.
                    let sends = match transport {
                        Transport::Tcp => totals.sends,
                        Transport::Udp => 4000,
                    };
                    assert!(sends >= 4000, "{spec}");
                    assert_eq!(totals.bytes, 4000 * size as u64, "{spec}");
                    assert_exact(&spec, &totals, sends);
                }
            }
        }
    }
}

#[test]
fn payload_arrives_as_sent() {
    for text in [
        "tcp4:verify,size=65536,count=500",
        "tcp6:verify,size=10007,count=3000,flows=3,nodelay",
        "tcp4:verify,cork,size=100,count=3000",
        "udp4:verify,size=65507,count=500",
        "udp6:verify,size=1,count=2000,flows=2",
        "udp6:verify,engine=copy,size=40000,count=500",
        "tcp4:verify,count=20,rate=20MB/s",
    ] {
        let spec: Spec = text.parse().unwrap();
        let totals = generate(&spec);
        assert_eq!(
            totals.bytes,
            spec.count.unwrap() * spec.size as u64,
            "{text}"
        );
        assert_exact(&spec, &totals, totals.sends);
    }
}

#[test]
fn segments_arrive_as_datagrams() {
    for text in [
        "udp4:gso=1400,verify,count=2000",
        "udp6:gso=1000,verify,size=64000,count=2000",
        "udp4:gso=1000,verify,size=2500,count=2000",
    ] {
        let spec: Spec = text.parse().unwrap();
        let totals = generate(&spec);
        assert_exact(&spec, &totals, 2000);
        let segments = spec.size.div_ceil(usize::from(spec.gso.unwrap())) as u64;
        assert_eq!(totals.delivered, 2000 * segments, "{text}");
    }
}

#[test]
fn a_corked_datagram_is_two_sends() {
    let spec: Spec = "udp4:cork,verify,size=3000,count=2000".parse().unwrap();
    let totals = generate(&spec);
    assert_exact(&spec, &totals, 4000);
    assert_eq!(totals.delivered, 2000);
}

#[test]
fn a_stopped_run_has_counted_everything() {
    for text in ["tcp4", "udp6", "udp4:rate=1MB/s", "tcp6:rate=100KB/s"] {
        let spec: Spec = text.parse().unwrap();
        let (counters, stop) = (Counters::default(), AtomicBool::new(false));
        let totals = std::thread::scope(|scope| {
            let run = scope.spawn(|| generator::run(&spec, &counters, &stop));
            // Under load it may take a while until the first send.
            let began = Instant::now();
            while counters.read().sends == 0 && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Release);
            run.join().unwrap().unwrap()
        });
        assert!(totals.sends > 0);
        assert_exact(&spec, &totals, totals.sends);
    }
}
