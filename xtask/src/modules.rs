//! Which module files a guest needs, in the order to load them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::kernels::Kernel;

/// A module, uncompressed.
#[derive(Debug)]
pub(crate) struct Module {
    /// File name, ending in `.ko`.
    pub(crate) file: String,
    /// The module.
    pub(crate) content: Vec<u8>,
}

/// Reads the modules asked for and those that they need, in loading order.
pub(crate) fn read(kernel: &Kernel, wanted: &[String]) -> Result<Vec<Module>> {
    let list = |name: &str| {
        let path = kernel.modules.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (dep, builtin) = (list("modules.dep")?, list("modules.builtin")?);
    let dependencies = Dependencies::parse(&dep, &builtin);
    let paths = dependencies.order(wanted, &kernel.release)?;
    paths
        .iter()
        .map(|path| read_one(&kernel.modules.join(path)))
        .collect()
}

fn read_one(path: &Path) -> Result<Module> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let unpack = |program: &str| {
        let output = Command::new(program)
            .args(["--decompress", "--stdout"])
            .arg(path)
            .output()
            .with_context(|| format!("cannot start {program} to unpack {}", path.display()))?;
        if !output.status.success() {
            bail!(
                "{program} cannot unpack {}: {}",
                path.display(),
                output.status
            );
        }
        Ok(output.stdout)
    };
    let (file, content) = if let Some(file) = name.strip_suffix(".xz") {
        (file.to_owned(), unpack("xz")?)
    } else if let Some(file) = name.strip_suffix(".zst") {
        (file.to_owned(), unpack("zstd")?)
    } else {
        let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        (name, content)
    };
    Ok(Module { file, content })
}

/// What `depmod` found out.
#[derive(Debug)]
struct Dependencies<'a> {
    /// By module name: its file and the files that it needs, nearest first.
    modules: BTreeMap<String, (&'a str, Vec<&'a str>)>,
    /// Modules that are part of the kernel.
    builtin: BTreeSet<String>,
}

impl<'a> Dependencies<'a> {
    fn parse(dep: &'a str, builtin: &str) -> Self {
        let modules = dep
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(file, needs)| (name(file), (file, needs.split_whitespace().collect())))
            .collect();
        Self {
            modules,
            builtin: builtin.lines().map(name).collect(),
        }
    }

    /// Files to load, each once and after what it needs.
    fn order(&self, wanted: &[String], release: &str) -> Result<Vec<&'a str>> {
        let mut order = Vec::new();
        for module in wanted {
            let module = module.replace('-', "_");
            if self.builtin.contains(&module) {
                continue;
            }
            let Some((file, needs)) = self.modules.get(&module) else {
                bail!("kernel {release} has no module {module}");
            };
            // depmod lists the nearest first, so the farthest is loaded first.
            for path in needs.iter().rev().chain([file]) {
                if !order.contains(path) {
                    order.push(path);
                }
            }
        }
        Ok(order)
    }
}

/// The module's name: its file name without `.ko`; the kernel reads `-` as `_`.
fn name(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or(file);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::Dependencies;

    const DEP: &str = "\
kernel/net/virtio_net.ko.xz: kernel/net/net_failover.ko.xz kernel/net/failover.ko.xz
kernel/net/net_failover.ko.xz: kernel/net/failover.ko.xz
kernel/net/failover.ko.xz:
kernel/net/vhost-net.ko: kernel/net/tap.ko
kernel/net/tap.ko:
";

    fn order(wanted: &[&str]) -> anyhow::Result<Vec<&'static str>> {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        Dependencies::parse(DEP, "kernel/drivers/virtio-pci.ko\n").order(&wanted, "6.12")
    }

    #[test]
    fn what_a_module_needs_comes_first_and_once() {
        assert_eq!(
            order(&["net_failover", "virtio_net"]).unwrap(),
            [
                "kernel/net/failover.ko.xz",
                "kernel/net/net_failover.ko.xz",
                "kernel/net/virtio_net.ko.xz"
            ]
        );
    }

    #[test]
    fn dash_and_underscore_are_the_same() {
        for name in ["vhost-net", "vhost_net"] {
            assert_eq!(
                order(&[name]).unwrap(),
                ["kernel/net/tap.ko", "kernel/net/vhost-net.ko"]
            );
        }
    }

    #[test]
    fn built_in_modules_need_no_file_and_unknown_ones_are_errors() {
        assert!(order(&["virtio_pci"]).unwrap().is_empty());
        let error = order(&["nothing"]).unwrap_err().to_string();
        assert!(error.contains("no module nothing"), "{error}");
    }
}
