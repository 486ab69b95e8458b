//! What the guest's kernel says on its console, and what of it fails a run.

/// Words that begin a report of a broken kernel.
const SPLATS: &[&str] = &[
    "Kernel panic",
    "BUG: ",
    "kernel BUG at",
    "Oops: ",
    "general protection fault",
    "invalid opcode:",
    "UBSAN: ",
];

/// Lines shown of one report.
const SHOWN: usize = 40;

/// The first report of a broken kernel (a panic, BUG, Oops or WARNING), with the
/// lines that follow it, or `None` if the log has none.
pub(crate) fn splat(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let at = lines.iter().position(|line| is_splat(line))?;
    let end = lines.len().min(at + SHOWN);
    Some(lines.get(at..end)?.join("\n"))
}

/// A report begins its line, but for the words that follow another prefix
/// (`watchdog: BUG: `). A driver's own sentence with the word WARNING is none.
fn is_splat(line: &str) -> bool {
    let message = message(line);
    message.starts_with("WARNING: ")
        || SPLATS.iter().any(|splat| {
            message.match_indices(splat).any(|(at, _)| {
                at == 0
                    || message
                        .get(..at)
                        .is_some_and(|before| before.ends_with(' '))
            })
        })
}

/// The line without its time stamp and caller (`[    1.234567][  T1] `).
fn message(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some((_, after)) = rest
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    {
        rest = after.trim_start();
    }
    rest
}

/// The last lines of a log.
pub(crate) fn tail(log: &str, lines: usize) -> String {
    let all: Vec<&str> = log.lines().collect();
    all.get(all.len().saturating_sub(lines)..)
        .unwrap_or_default()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::{splat, tail};

    #[test]
    fn reports_of_a_broken_kernel() {
        for line in [
            "[    1.234567] Kernel panic - not syncing: sysrq triggered crash",
            "[    1.234567] BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "[    1.234567] watchdog: BUG: soft lockup - CPU#0 stuck for 26s!",
            "[    1.234567] kernel BUG at net/core/skbuff.c:100!",
            "[    1.234567] Oops: 0002 [#1] PREEMPT SMP NOPTI",
            "[    1.234567] WARNING: CPU: 0 PID: 1 at net/core/dev.c:1 f+0x0/0x1",
            "[    1.234567][    T1] WARNING: net/core/dev.c:1 at f+0x0/0x1, CPU#0: sh/1",
            "[    1.234567] WARNING: possible circular locking dependency detected",
            "WARNING: CPU: 0 PID: 1 at net/core/dev.c:1",
        ] {
            assert!(splat(line).is_some(), "{line}");
        }
    }

    #[test]
    fn ordinary_lines() {
        for line in [
            "[    0.000000] Linux version 6.12.9 (gcc-14)",
            "[    0.1] x86/cpu: SGX disabled by BIOS. WARNING: nothing",
            "[    0.2] DEBUG: something",
            "",
        ] {
            assert_eq!(splat(line), None, "{line}");
        }
    }

    #[test]
    fn a_report_is_shown_from_its_first_line() {
        let log = "[ 1.0] fine\n[ 2.0] Oops: 0002\n[ 2.0] Call Trace:\n[ 2.0]  f+0x1/0x2\n";
        let report = splat(log).unwrap();
        assert_eq!(
            report,
            "[ 2.0] Oops: 0002\n[ 2.0] Call Trace:\n[ 2.0]  f+0x1/0x2"
        );
    }

    #[test]
    fn tail_of_a_short_log_is_all_of_it() {
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(tail("", 2), "");
    }
}
