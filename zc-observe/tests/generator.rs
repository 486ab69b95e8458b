//! The generator on this kernel: every send and byte accounted for.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test's helpers fail as tests do"
)]

use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use zc_observe::generator::{self, Counters, Engine, Family, Spec, Totals, Transport};

#[expect(dead_code, reason = "each test program uses its part")]
mod common;

use common::{Daemon, run, zc_observe};

const PROGRAM: &str = env!("CARGO_BIN_EXE_zc-observe");

fn generate(spec: &Spec) -> Totals {
    generator::run(spec, &Counters::default(), &AtomicBool::new(false)).unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let line = text.lines().last();
    let line = line.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(line).unwrap()
}

/// Runs a shell script as a process of its own with this program as `$Z`.
fn script(wrapper: &[&str], text: &str) -> Output {
    let mut command = Command::new("timeout");
    command
        .arg("60")
        .args(wrapper)
        .args(["sh", "-ec", text])
        .env("Z", PROGRAM)
        .stdin(Stdio::null());
    command.output().unwrap()
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
                let spec = Spec {
                    engine,
                    size: 4000,
                    count: Some(20_000),
                    ..Spec::new(transport, family)
                };
                let totals = generate(&spec);
                // TCP may take a message in two sends if the receiver is slow.
                let sends = match transport {
                    Transport::Tcp => totals.sends,
                    Transport::Udp => 20_000,
                };
                assert!(sends >= 20_000);
                assert_eq!(totals.bytes, 80_000_000, "{spec}");
                assert_exact(&spec, &totals, sends);
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
            std::thread::sleep(Duration::from_millis(200));
            stop.store(true, std::sync::atomic::Ordering::Release);
            run.join().unwrap().unwrap()
        });
        assert!(totals.sends > 0);
        assert_exact(&spec, &totals, totals.sends);
    }
}

#[test]
fn to_a_device_that_takes_it_nothing_is_copied() {
    let output = script(
        &["unshare", "-n"],
        "ip link add ifb-sink type ifb
         ip addr add 10.9.0.1/24 dev ifb-sink
         ip link set ifb-sink up
         ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev ifb-sink nud permanent
         $Z generate --transport udp --connect 10.9.0.2:9 --device ifb-sink --count 20000 --json",
    );
    let totals = json(&output);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(totals["sends"], 20_000);
    assert_eq!(totals["completions_zerocopy"], 20_000);
    assert_eq!(totals["completions_copied"], 0);
}

#[test]
fn little_option_memory_loses_nothing() {
    // The limit is the network namespace's own.
    let output = script(
        &["unshare", "-n"],
        "ip link set lo up
         echo 1000 > /proc/sys/net/core/optmem_max
         for flow in 'tcp --size 64KiB' 'udp --size 1000' 'udp --size 1000 --cork'; do
             $Z generate --transport $flow --count 2000 --reap-every 100000 --verify --json
         done",
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 3);
    for line in text.lines() {
        let totals: Value = serde_json::from_str(line).unwrap();
        assert!(totals["refused"].as_u64() > Some(0), "{line}");
        assert_eq!(totals["completions_copied"], totals["sends"]);
        let bytes = 2000 * totals["size"].as_u64().unwrap();
        assert_eq!(totals["bytes"], bytes, "{line}");
        assert_eq!(totals["delivered_bytes"], bytes, "{line}");
    }
}

/// Without the capability that lifts the limit of locked memory.
const UNPRIVILEGED: [&str; 5] = [
    "setpriv",
    "--bounding-set",
    "-ipc_lock",
    "--inh-caps",
    "-ipc_lock",
];

#[test]
fn little_locked_memory_loses_nothing() {
    let output = script(
        &UNPRIVILEGED,
        "ulimit -l 64; $Z generate --size 16KiB --count 2000 --reap-every 100000 --json",
    );
    let totals = json(&output);
    assert_eq!(output.status.code(), Some(0), "{totals}");
    assert!(totals["refused"].as_u64() > Some(0), "{totals}");
    assert_eq!(totals["bytes"], 2000 * 16_384);
    assert_eq!(totals["completions_copied"], totals["sends"]);
}

#[test]
fn a_send_above_the_limit_ends_with_its_name() {
    for transport in ["tcp", "udp"] {
        let output = script(
            &UNPRIVILEGED,
            &format!("ulimit -l 64; $Z generate --transport {transport} --size 65000 --count 9"),
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("refused (ENOBUFS)"), "{said}");
        assert!(said.contains("RLIMIT_MEMLOCK (65536 bytes)"), "{said}");
        assert!(output.stdout.is_empty());
    }
}

fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

#[test]
fn two_runs_split_a_flow() {
    let at = format!("127.0.0.1:{}", free_port());
    let receiver = zc_observe(&["generate", "--listen", &at, "--verify", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let sender = loop {
        let sender = run(&["generate", "--connect", &at, "--count", "300", "--json"]);
        if sender.status.code() == Some(0) {
            break sender;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{sender:?}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let (sent, received) = (json(&sender), json(&receiver.wait_with_output().unwrap()));
    assert_eq!(sent["bytes"], 300 * 65_536);
    assert_eq!(sent["completions_copied"], sent["sends"]);
    assert_eq!(received["delivered_bytes"], 300 * 65_536);
    assert_eq!(received["verify_failures"], 0);
}

#[test]
fn payload_that_is_not_ours_is_found() {
    let at = format!("127.0.0.1:{}", free_port());
    let mut receiver = zc_observe(&["generate", "--transport", "udp", "--listen", &at])
        .args(["--count", "5", "--duration", "20s", "--verify", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    while receiver.try_wait().unwrap().is_none() {
        // Refused until the receiver is there, and once it has ended.
        let _ = socket.send_to(b"not the pattern", &at);
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = receiver.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["verify_failures"], 5);
}

#[test]
fn what_the_other_side_does_not_take_stays_pending() {
    // Accepted by the kernel and never read.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let mut command = zc_observe(&["generate", "--connect", &at]);
    let output = command
        .args(["--duration", "500ms", "--json"])
        .output()
        .unwrap();
    let totals = json(&output);
    assert_eq!(output.status.code(), Some(1), "{totals}");
    let number = |name: &str| totals[name].as_u64().unwrap();
    assert!(number("pending") > 0, "{totals}");
    assert_eq!(
        number("sends"),
        number("completions_copied") + number("completions_zerocopy") + number("pending")
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("have no notification"));
}

#[test]
fn an_interrupted_run_still_counts_everything() {
    let child = zc_observe(&["generate", "--duration", "60s", "--json"])
        .args(["--interval", "50ms"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let totals = json(&output);
    assert_eq!(totals["schema"], 1);
    assert_eq!(totals["kind"], "total");
    assert!(totals["sends"].as_u64() > Some(0));
    assert_eq!(totals["completions_copied"], totals["sends"]);
    assert_eq!(totals["delivered_bytes"], totals["bytes"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(r#""kind":"interval""#));
}

#[test]
fn results_have_three_forms() {
    let form = |format: &str| {
        let output = run(&["generate", "--count", "160", "--format", format]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(form("table").contains("completed copied"));
    let classic = form("classic");
    assert!(classic.starts_with("tx=16"), "{classic}");
    assert!(classic.contains("(10 MB)") && classic.contains(" zc=n\nrx="));
    let json: Value = serde_json::from_str(&form("json")).unwrap();
    assert_eq!(json["copied_share"], 1.0);
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for arguments in [
        &["--transport", "raw"][..],
        &["--engine", "uring"],
        &["--family", "5"],
        &["--size", "0"],
        &["--size", "many"],
        &["--transport", "udp", "--size", "65508"],
        &["--gso", "100"],
        &["--rate", "0"],
        &["--duration", "0s"],
        &["--flows", "0"],
        &["--connect", "127.0.0.1"],
        &["--connect", "[::1]:9"],
        &["--listen", ":9", "--connect", "127.0.0.1:9"],
        &["--device", "eth0"],
        &["--json", "--format", "table"],
    ] {
        let output = zc_observe(&["generate"]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_daemon_sends_until_it_ends() {
    let mut daemon = Daemon::start(&["--generate", "tcp4", "--generate", "udp6:size=700,verify"]);
    let sends = |text: &str, flow: &str| -> f64 {
        let name = format!("zc_generator_sends_total{{flow=\"{flow}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0.0, |value| value.parse().unwrap())
    };
    let began = Instant::now();
    loop {
        let text = daemon.get("/metrics").body;
        if sends(&text, "tcp4") >= 5.0 && sends(&text, "udp6:size=700,verify") >= 100.0 {
            let failures = "zc_generator_verify_failures_total{flow=\"udp6:size=700,verify\"} 0";
            assert!(text.contains(failures), "{text}");
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let (status, _) = daemon.end(Signal::SIGTERM);
    assert_eq!(status.code(), Some(0));
    let printed = daemon.printed();
    for flow in ["tcp4", "udp6:size=700,verify"] {
        let line = printed
            .lines()
            .find(|line| line.contains(&format!("{flow}: ")));
        // NAME: 46 sends, 3.0 MB; 46 copied, 0 zero-copy; …
        let line = line.unwrap().split_once(": ").unwrap().1;
        let (sends, rest) = line.split_once(" sends").unwrap();
        assert!(
            rest.contains(&format!("; {sends} copied, 0 zero-copy")),
            "{line}"
        );
    }
}

#[test]
fn the_daemon_refuses_a_wrong_flow() {
    let output = run(&["daemon", "--probes", "off", "--generate", "tcp4:speed=1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("'speed'"));
}
