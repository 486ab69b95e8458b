//! The identities that every count must satisfy while only our generator sends, against
//! the running kernel: natively, and in guests with each kind of probe.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test speaks and fails by panicking"
)]

mod support;

use std::io::Read;
use std::net::UdpSocket;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use support::net::{ip, namespace, tap, tun, up};
use support::{Seen, assert_nothing_lost, send, sends, watch};
use zc_observe::generator::{Family, Spec, Totals, Transport};
use zc_observe::kernel::host::Version;
use zc_observe::probes::Observer;
use zc_observe::snapshot::Method;

/// Attached once, and used by one test at a time: it counts everything on the host.
static OBSERVER: LazyLock<Mutex<Observer>> = LazyLock::new(|| Mutex::new(support::observer()));

fn observer() -> MutexGuard<'static, Observer> {
    OBSERVER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn functions(observer: &Observer) -> bool {
    matches!(observer.tier(), Some(Method::Fentry | Method::Kprobe))
}

/// What copies a packet that a local socket gets, on this kernel.
fn delivery(observer: &Observer) -> &'static str {
    if observer.kernel() >= Some(Version(6, 17)) {
        "local_delivery"
    } else {
        "receive_path"
    }
}

/// Identities 1, 2 and 4 for a flow.
fn assert_sends(what: &str, observer: &Observer, totals: &Totals, seen: &Seen) {
    assert_eq!(
        seen.accepted, totals.sends,
        "{what}: attempts\n{totals:?}\n{seen:?}"
    );
    assert_eq!(
        (seen.zerocopy, seen.copied),
        (totals.completions_zerocopy, totals.completions_copied),
        "{what}: completions by outcome\n{totals:?}\n{seen:?}"
    );
    assert_eq!(
        seen.zerocopy + seen.copied,
        totals.sends,
        "{what}: all complete"
    );
    assert_eq!(
        (seen.senders.0, seen.senders.1),
        (seen.zerocopy, seen.copied),
        "{what}: senders add up"
    );
    assert_eq!(seen.strangers, 0, "{what}: somebody else is blamed");
    assert_eq!(seen.copy_errors, 0, "{what}: failed copies");
    assert_eq!(seen.second_copies, 0, "{what}: second copies");
    if functions(observer) {
        assert_eq!(
            seen.attempt_bytes,
            Some(totals.asked_bytes),
            "{what}: bytes attempted"
        );
        assert_eq!(
            seen.completed_bytes,
            Some(totals.asked_bytes),
            "{what}: bytes completed"
        );
        assert_eq!(
            (seen.senders.2, seen.senders.3),
            (seen.copied_skbs(), seen.copied_bytes()),
            "{what}: deep copies of senders add up"
        );
        assert_eq!(seen.refused, Some(totals.refused), "{what}: refusals");
    } else {
        assert_eq!(seen.completed_bytes, None, "{what}: bytes cannot be known");
    }
}

/// Identity 3: everything that was delivered was copied once, for one cause on one device.
fn assert_copied(what: &str, seen: &Seen, cause: &str, kind: &str, bytes: u64) {
    let found: Vec<_> = seen
        .copies
        .iter()
        .map(|(cause, kind, _, bytes)| (cause.as_str(), kind.as_str(), *bytes))
        .collect();
    assert_eq!(found, [(cause, kind, bytes)], "{what}\n{seen:?}");
}

fn spec(transport: Transport, family: Family, size: usize, count: u64) -> Spec {
    Spec {
        size,
        count: Some(count),
        ..Spec::new(transport, family)
    }
}

#[test]
fn loopback_copies_everything_that_it_delivers() {
    let mut observer = observer();
    for transport in [Transport::Tcp, Transport::Udp] {
        for family in [Family::V4, Family::V6] {
            for (size, share) in [(1_000, 2), (30_000, 2)] {
                let spec = spec(transport, family, size, sends() / share);
                let what = format!("{spec} of {size}");
                let (totals, seen) = watch(&mut observer, || send(&spec));
                // TCP may take a message in parts.
                assert!(totals.sends >= sends() / share, "{what}");
                assert_eq!(
                    totals.completions_copied, totals.sends,
                    "{what}: loopback copies"
                );
                assert_eq!(totals.delivered_bytes, totals.bytes, "{what}: delivery");
                assert_sends(&what, &observer, &totals, &seen);
                // What TCP sends again is received, and copied, again.
                let received = totals.delivered_bytes + totals.retransmitted_bytes;
                if functions(&observer) {
                    assert_copied(&what, &seen, delivery(&observer), "loopback", received);
                } else {
                    let devices = seen.devices.iter();
                    let found: Vec<_> = devices.map(|(kind, rx, _)| (kind.as_str(), *rx)).collect();
                    assert_eq!(found, [("loopback", received)], "{what}");
                }
            }
        }
    }
    assert_nothing_lost(&mut observer);
}

#[test]
fn udp_segmentation_is_counted_by_send() {
    let mut observer = observer();
    let spec = Spec {
        gso: Some(1_400),
        ..spec(Transport::Udp, Family::V4, 28_000, sends() / 10)
    };
    let (totals, seen) = watch(&mut observer, || send(&spec));
    assert_eq!(totals.delivered_bytes, totals.bytes);
    assert_sends("gso", &observer, &totals, &seen);
    if functions(&observer) {
        assert_copied("gso", &seen, delivery(&observer), "loopback", totals.bytes);
    }
    assert_nothing_lost(&mut observer);
}

/// A flow of datagrams to somebody behind a device.
fn towards(count: u64) -> Spec {
    Spec {
        connect: Some("10.9.9.9:9".parse().unwrap()),
        ..spec(Transport::Udp, Family::V4, 1_400, count)
    }
}

/// The control: a device that drops what it gets never copies.
#[test]
fn a_device_that_drops_copies_nothing() {
    let mut observer = observer();
    let (totals, seen) = watch(&mut observer, || {
        namespace(|| {
            ip("link add zc0 type ifb");
            up("zc0", "10.9.9.1/24", "10.9.9.9");
            send(&towards(sends()))
        })
    });
    assert_eq!(totals.completions_zerocopy, sends());
    assert_sends("ifb", &observer, &totals, &seen);
    assert_eq!(seen.copies, [], "nothing is copied");
    if !functions(&observer) {
        assert_eq!(seen.devices, [("ifb".to_owned(), 0, totals.bytes)]);
    }
    assert_nothing_lost(&mut observer);
}

#[test]
fn a_packet_tap_copies_what_is_transmitted() {
    let mut observer = observer();
    let count = sends() / 5;
    let ((tapped, free), seen) = watch(&mut observer, || {
        namespace(|| {
            ip("link add zc0 type ifb");
            up("zc0", "10.9.9.1/24", "10.9.9.9");
            let tap = tap("zc0");
            let tapped = send(&towards(count));
            drop(tap);
            (tapped, send(&towards(count)))
        })
    });
    assert_eq!(tapped.completions_copied, count, "the tap copies");
    assert_eq!(free.completions_zerocopy, count, "without it nothing does");
    assert_eq!((seen.zerocopy, seen.copied), (count, count));
    if functions(&observer) {
        assert_copied("tap", &seen, "packet_tap_tx", "ifb", tapped.bytes);
    }
    assert_nothing_lost(&mut observer);
}

/// A pair of devices over two namespaces: copied where it is received, and there only.
#[test]
fn a_veth_pair_copies_what_is_delivered_behind_it() {
    let mut observer = observer();
    let count = sends() / 5;
    let ((totals, delivered), seen) = watch(&mut observer, || {
        namespace(|| {
            let (hello, far) = mpsc::channel();
            let (go, wait) = mpsc::channel::<()>();
            thread::scope(|scope| {
                let receiver = scope.spawn(move || {
                    namespace(move || {
                        hello.send(nix::unistd::gettid()).unwrap();
                        wait.recv().unwrap();
                        ip("link set veth0 up");
                        ip("addr add 10.9.9.9/24 dev veth0");
                        let socket = UdpSocket::bind("10.9.9.9:9").unwrap();
                        hello.send(nix::unistd::gettid()).unwrap();
                        let (mut bytes, mut buffer) = (0, [0; 4096]);
                        for _ in 0..count {
                            bytes += socket.recv(&mut buffer).unwrap() as u64;
                        }
                        bytes
                    })
                });
                let other = far.recv().unwrap();
                // The kernel names the peer.
                ip("link add zc0 type veth");
                ip(&format!("link set veth0 netns {other}"));
                ip("link set zc0 up");
                ip("addr add 10.9.9.1/24 dev zc0");
                go.send(()).unwrap();
                far.recv().unwrap();
                let spec = Spec {
                    // Slow enough for a receiver that reads one by one.
                    rate: Some(2_000_000),
                    ..towards(count)
                };
                (send(&spec), receiver.join().unwrap())
            })
        })
    });
    assert_eq!(delivered, totals.bytes, "all of it arrived");
    assert_sends("veth", &observer, &totals, &seen);
    assert_eq!(totals.completions_copied, count);
    if functions(&observer) {
        assert_copied("veth", &seen, delivery(&observer), "veth", delivered);
    } else {
        let received: u64 = seen.devices.iter().map(|(_, received, _)| received).sum();
        assert_eq!(received, delivered, "{seen:?}");
    }
    assert_nothing_lost(&mut observer);
}

#[test]
fn a_tun_device_copies_what_its_reader_gets() {
    let mut observer = observer();
    // No more than its queue holds: it drops the rest, uncopied.
    let count = 400;
    let ((totals, read), seen) = watch(&mut observer, || {
        namespace(|| {
            let mut tun = std::fs::File::from(tun("zc0"));
            ip("link set zc0 up");
            ip("addr add 10.9.9.1/24 dev zc0");
            let totals = send(&towards(count));
            let (mut packets, mut buffer) = (0, [0; 4096]);
            while packets < count {
                let length = tun.read(&mut buffer).unwrap();
                // Of a header of 10 bytes and IPv4; IPv6 speaks up on its own.
                packets += u64::from(length > 1_400 && buffer[10] >> 4 == 4);
            }
            (totals, packets)
        })
    });
    assert_eq!(read, count);
    assert_sends("tun", &observer, &totals, &seen);
    assert_eq!(totals.completions_copied, count);
    if functions(&observer) {
        assert_copied("tun", &seen, "tun_xmit", "tun", totals.bytes);
    }
    assert_nothing_lost(&mut observer);
}

#[test]
fn io_uring_sends_are_counted() {
    let mut observer = observer();
    let (count, size) = (200, 1_400);
    let (told, seen) = watch(&mut observer, || support::uring::send(count, size));
    assert_eq!(told, count, "the application is told of copies");
    if !functions(&observer) {
        // Its notifications pass no error queue.
        assert_eq!((seen.accepted, seen.copied, seen.zerocopy), (0, 0, 0));
        return;
    }
    let bytes = count * u64::from(size);
    assert_eq!((seen.accepted, seen.refused), (count, Some(0)));
    assert_eq!((seen.copied, seen.zerocopy), (count, 0));
    assert_eq!(seen.attempt_bytes, Some(bytes));
    assert_eq!(seen.completed_bytes, Some(bytes));
    assert_copied("io_uring", &seen, delivery(&observer), "loopback", bytes);
    assert_eq!(seen.senders, (0, count, count, bytes), "senders add up");
    assert_eq!(seen.strangers, 0, "somebody else is blamed");
    assert_nothing_lost(&mut observer);
}

/// Datagrams of one short-lived process.
const CHILD_SENDS: u64 = 3;

#[test]
#[ignore = "what the children of the next test run"]
fn child() {
    send(&spec(Transport::Udp, Family::V4, 1_400, CHILD_SENDS));
}

/// The kernel gives the address of a closed socket to the next one, of another process.
#[test]
fn nobody_is_blamed_for_the_socket_that_was_there_before() {
    let mut observer = observer();
    let program = std::env::current_exe().unwrap();
    let mut children = Vec::new();
    let (_, seen) = watch(&mut observer, || {
        for _ in 0..20 {
            let mut child = std::process::Command::new(&program)
                .args(["--exact", "child", "--ignored"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            children.push(child.id());
            assert!(child.wait().unwrap().success());
        }
    });
    let all = CHILD_SENDS * children.len() as u64;
    assert_eq!((seen.accepted, seen.copied), (all, all));
    let snapshot = observer.snapshot().unwrap();
    for child in children {
        let sends: u64 = snapshot
            .senders
            .iter()
            .filter(|sender| sender.key.tgid == child)
            .map(|sender| sender.copied.0)
            .sum();
        let gone = !functions(&observer) && observer.kernel() < Some(Version(6, 3));
        let expected = if gone { 0 } else { CHILD_SENDS };
        assert_eq!(sends, expected, "sends of process {child}");
    }
}
