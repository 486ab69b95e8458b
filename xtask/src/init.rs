//! The guest's first program, a shell script for busybox, and what it says to us.
//!
//! It talks over three virtio-serial ports: the commands' standard output, their
//! standard error, and control. On the control port it says `ready`, then `exit N`
//! for each command, then `end`; we say `INT` or `TERM` (a signal for the command
//! that runs) and `bye` (everything arrived, power off).

use std::fmt::Write as _;

/// Numbers of the ports.
pub(crate) const STDOUT_PORT: u32 = 1;
pub(crate) const STDERR_PORT: u32 = 2;
pub(crate) const CONTROL_PORT: u32 = 3;

/// A command for the guest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Job {
    /// Said on standard output before it runs.
    pub(crate) title: Option<String>,
    /// Environment.
    pub(crate) env: Vec<(String, String)>,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
}

/// What the guest says on the control port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Said {
    /// Its system is set up.
    Ready,
    /// A command ended with this status; 128 + n if signal n killed it.
    Exit(u8),
    /// No command is left.
    End,
}

impl Said {
    /// Reads a line; `None` if it is none of ours.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line.trim().split_once(' ') {
            None if line.trim() == "ready" => Some(Self::Ready),
            None if line.trim() == "end" => Some(Self::End),
            Some(("exit", status)) => status.parse().ok().map(Self::Exit),
            _ => None,
        }
    }
}

/// The script. `modules` are files in `/modules`, in loading order; `network` asks for
/// an address on QEMU's user network; `marker` ends the output.
pub(crate) fn script(modules: &[String], network: bool, jobs: &[Job], marker: &str) -> String {
    let mut script = String::from(
        "#!/bin/busybox sh
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /dev/pts /root
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
",
    );
    for module in modules {
        let module = quote(&format!("/modules/{module}"));
        _ = writeln!(
            script,
            "insmod {module} || echo \"cannot load \"{module} >/dev/console"
        );
    }
    _ = write!(
        script,
        "until port=$(echo /dev/vport*p{CONTROL_PORT}); [ -c \"$port\" ]; do sleep 0.01; done
port=${{port%{CONTROL_PORT}}}
exec >\"$port\"{STDOUT_PORT} 2>\"$port\"{STDERR_PORT} 3<>\"$port\"{CONTROL_PORT} </dev/null
"
    );
    if network {
        script.push_str(
            "until [ -e /sys/class/net/eth0 ]; do sleep 0.01; done
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
ip route add default via 10.0.2.2
",
        );
    }
    // Commands run in the foreground, where the shell leaves their signals alone;
    // their process id is in a file for the part that passes signals on.
    script.push_str(
        "while read -r word <&3; do
  case $word in
    bye) poweroff -f ;;
    *) kill -s \"$word\" \"$(cat /run/command)\" 2>/dev/null ;;
  esac
done &
job() {
  sh -c 'echo $$ >/run/command; exec \"$@\" 3<&-' sh \"$@\"
  echo \"exit $?\" >&3
}
echo ready >&3
",
    );
    for job in jobs {
        if let Some(title) = &job.title {
            _ = writeln!(script, "echo {}", quote(title));
        }
        let mut words = vec!["job".to_owned()];
        if !job.env.is_empty() {
            words.push("env".to_owned());
        }
        words.extend(
            job.env
                .iter()
                .map(|(name, value)| quote(&format!("{name}={value}"))),
        );
        words.extend(job.command.iter().map(|word| quote(word)));
        _ = writeln!(script, "{}", words.join(" "));
    }
    let marker = quote(marker);
    _ = write!(
        script,
        "printf %s {marker}
printf %s {marker} >&2
echo end >&3
while :; do sleep 60; done
"
    );
    script
}

/// Quotes a word for the shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::{Job, Said, quote, script};
    use std::process::Command;

    #[test]
    fn lines_of_the_control_port() {
        assert_eq!(Said::parse("ready\n"), Some(Said::Ready));
        assert_eq!(Said::parse("exit 0"), Some(Said::Exit(0)));
        assert_eq!(Said::parse("exit 137\n"), Some(Said::Exit(137)));
        assert_eq!(Said::parse("end"), Some(Said::End));
        for other in ["", "exit", "exit x", "exit 256", "exit -1", "bye", "end 1"] {
            assert_eq!(Said::parse(other), None, "{other}");
        }
    }

    #[test]
    fn words_reach_the_shell_as_they_are() {
        let word = "it's $HOME \"a\\b\" `x`\n*";
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("printf %s {}", quote(word)))
            .output();
        assert_eq!(output.unwrap().stdout, word.as_bytes());
    }

    #[test]
    fn script_is_shell_and_runs_every_job() {
        let job = Job {
            title: Some("it's one".to_owned()),
            env: vec![("A".to_owned(), "b c".to_owned())],
            command: vec!["prog".to_owned(), "an arg".to_owned()],
        };
        let script = script(&["veth.ko".to_owned()], true, &[job.clone(), job], "<end>");
        assert_eq!(
            script
                .matches("\njob env 'A=b c' 'prog' 'an arg'\n")
                .count(),
            2
        );
        assert!(script.contains("insmod '/modules/veth.ko'"));
        let checked = Command::new("sh")
            .args(["-n", "-c", &script])
            .status()
            .unwrap();
        assert!(checked.success());
    }
}
