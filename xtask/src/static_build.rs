//! Programs for guests: linked statically, since a guest has no libraries.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const PACKAGE: &str = "zc-observe";

/// Builds the program `zc-observe` for guests.
pub(crate) fn program() -> Result<PathBuf> {
    build(&["build", "--bin", PACKAGE], PACKAGE)
}

/// Builds a test of `zc-observe` for guests.
pub(crate) fn test(name: &str) -> Result<PathBuf> {
    build(&["test", "--no-run", "--test", name], name)
}

fn build(args: &[&str], name: &str) -> Result<PathBuf> {
    let output = Command::new("cargo")
        .current_dir(workspace::root()?)
        .args(args)
        .args([
            "--quiet",
            "--package",
            PACKAGE,
            "--target",
            TARGET,
            "--target-dir",
        ])
        .arg(workspace::target("guest")?)
        .args(["--message-format", "json-render-diagnostics"])
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        // The file goes through the initramfs into the guest's memory.
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env("CARGO_PROFILE_DEV_STRIP", "debuginfo")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "cannot build {name} for guests: cargo ended with {}",
            output.status
        );
    }
    executable(&String::from_utf8_lossy(&output.stdout), name)
        .with_context(|| format!("cargo did not say where it put {name}"))
}

/// The executable of a target in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::executable;

    #[test]
    fn executable_of_the_named_target() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"zc-observe"},"executable":"/t/zc-observe"}"#,
            "\nnot json\n",
            r#"{"reason":"compiler-artifact","target":{"name":"identities"},"executable":"/t/identities-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"lib"},"executable":null}"#,
        );
        let found = |name| executable(messages, name);
        assert_eq!(
            found("identities").unwrap().to_str(),
            Some("/t/identities-1")
        );
        assert_eq!(found("lib"), None);
        assert_eq!(found("other"), None);
    }
}
