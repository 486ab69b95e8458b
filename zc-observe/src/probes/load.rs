//! Loading the object into the kernel: the maps are made, the programs wait.

use aya::{Btf, Ebpf, EbpfLoader};
use zc_observe_ebpf::{Kernel, Offsets};

use super::AttachError;
use crate::kernel::btf::KernelBtf;
use crate::kernel::globals;
use crate::kernel::host::{Host, Lockdown};
use crate::kernel::offsets;
use crate::kernel::refusal::Step;
use crate::kernel::symbols::Symbols;

/// The programs, as `cargo xtask build-ebpf` built them.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../zc-observe-ebpf/prebuilt/zc-observe.x86_64.o"
));

/// What is known of the kernel while programs are attached.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) host: Host,
    pub(super) btf: KernelBtf,
    /// For the loader, which reads BTF in its own way.
    pub(super) loader_btf: Btf,
    pub(super) symbols: Symbols,
    pub(super) kernel: Kernel,
    /// Features that this kernel's types do not allow.
    pub(super) offsets: Offsets,
}

impl Facts {
    /// Reads them, or says what the host does not permit.
    pub(super) fn read() -> Result<Self, AttachError> {
        let host = Host::read();
        let missing = host.capabilities.missing_for_probes();
        if !missing.is_empty() {
            let names: Vec<_> = missing.into_iter().map(|one| one.as_str()).collect();
            return Err(AttachError::NotPermitted(format!(
                "attaching probes needs {}, which this process lacks: run it as root or give it those",
                names.join(" and ")
            )));
        }
        if host.lockdown == Lockdown::Confidentiality {
            return Err(AttachError::NotPermitted(
                "this kernel is locked down (lockdown=confidentiality), so no program may read kernel memory: \
                 nothing can be observed; boot with lockdown=integrity at most, or use --probes off with \
                 --generate to see the completions of our own traffic"
                    .into(),
            ));
        }
        let btf =
            KernelBtf::load().map_err(|error| AttachError::NotPermitted(error.to_string()))?;
        let loader_btf = Btf::from_sys_fs().map_err(|error| {
            AttachError::NotPermitted(format!("cannot read the kernel's BTF: {error}"))
        })?;
        let symbols = Symbols::load().map_err(|error| AttachError::Failed(error.to_string()))?;
        if symbols.hidden() {
            tracing::warn!(
                "the kernel hides its symbols (kernel.kptr_restrict={}): call sites and causes stay unknown",
                host.kptr_restrict.unwrap_or(2)
            );
        }
        let resolved = offsets::offsets(&btf);
        for field in &resolved.missing {
            tracing::warn!(
                "this kernel's BTF has no {}.{}: lost: {}",
                field.strukt,
                field.field,
                field.feature
            );
        }
        Ok(Self {
            kernel: globals::globals(&btf, &symbols),
            host,
            btf,
            loader_btf,
            symbols,
            offsets: resolved.offsets,
        })
    }

    /// Makes the maps.
    pub(super) fn load(&self) -> Result<Ebpf, AttachError> {
        let log_level: u8 = if tracing::enabled!(target: "zc_observe_ebpf", tracing::Level::DEBUG) {
            aya_log_level::DEBUG
        } else {
            aya_log_level::SILENT
        };
        EbpfLoader::new()
            .btf(Some(&self.loader_btf))
            .override_global("OFFSETS", &self.offsets, true)
            .override_global("KERNEL", &self.kernel, true)
            .override_global("AYA_LOG_LEVEL", &log_level, false)
            .load(OBJECT)
            .map_err(|error| match super::attach::os_error(&error) {
                Some(os) => {
                    AttachError::NotPermitted(self.host.refusal(Step::Map, "of the counters", &os))
                }
                None => AttachError::Failed(format!("cannot load the programs: {error}")),
            })
    }
}

/// Levels of the programs' own log.
mod aya_log_level {
    pub(super) const SILENT: u8 = 0;
    pub(super) const DEBUG: u8 = 4;
}
