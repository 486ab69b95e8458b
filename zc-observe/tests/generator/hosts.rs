//! Without a receiver of its own: to a device, another run, a stranger.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{run, zc_observe};
use crate::{json, script};

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
    // Nobody of ours receives: not 0, but unknown.
    assert!(totals["delivered_bytes"].is_null(), "{totals}");
}

#[test]
fn a_connection_that_is_not_answered_can_be_interrupted() {
    let output = script(
        &["unshare", "-n"],
        "ip link add ifb-sink type ifb
         ip addr add 10.9.0.1/24 dev ifb-sink
         ip link set ifb-sink up
         ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev ifb-sink nud permanent
         timeout --preserve-status --signal INT 0.5 \
             $Z generate --connect 10.9.0.2:9 --count 5 --json || echo status=$?",
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("status=130"), "{text}");
    assert!(text.contains(r#""sends":0"#), "{text}");
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
fn what_was_sent_before_a_failure_is_still_accounted_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let sender = zc_observe(&["generate", "--connect", &at, "--duration", "20s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut connection, _) = listener.accept().unwrap();
    connection.read_exact(&mut [0; 100_000]).unwrap();
    // Closed with data unread: the kernel resets the connection.
    drop(connection);
    let output = sender.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot send"), "{said}");
    let totals = json(&output);
    assert!(totals["sends"].as_u64() > Some(0), "{totals}");
    assert_eq!(totals["pending"], 0, "{totals}");
}
