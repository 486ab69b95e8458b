//! Attaching one point with one method.

use std::error::Error;
use std::io;

use aya::Ebpf;
use aya::programs::{Program as Loaded, ProgramError};

use super::load::Facts;
use super::points::{Point, at_return};
use crate::kernel::refusal::Step;
use crate::kernel::symbols::strip_suffixes;
use crate::snapshot::{Method, ProbeState};

/// A point that is attached.
#[derive(Clone, Debug)]
pub(super) struct Attached {
    /// The symbol or tracepoint really used.
    pub(super) target: String,
    /// Its programs.
    pub(super) programs: Vec<&'static str>,
}

/// Attaches all programs that the point has for the method, to the first symbol that this
/// kernel has; nothing stays attached on failure.
pub(super) fn attach(
    ebpf: &mut Ebpf,
    facts: &Facts,
    point: &Point,
    method: Method,
) -> Result<Attached, ProbeState> {
    let target = target(facts, point, method)?;
    let mut attached = Attached {
        programs: Vec::new(),
        target,
    };
    let args = facts.btf.function_args(&attached.target);
    for program in point.programs.iter().filter(|one| one.method == method) {
        if program.args.is_some() && program.args != args {
            continue;
        }
        if let Err((step, error)) = attach_program(ebpf, facts, program.name, &attached.target) {
            detach(ebpf, &attached);
            let os = os_error(&error);
            if method == Method::Tracepoint
                && os.as_ref().and_then(io::Error::raw_os_error) == Some(libc::ENOENT)
            {
                return Err(ProbeState::Absent {
                    reason: format!(
                        "kernel {} has no tracepoint {}",
                        facts.host.release, attached.target
                    ),
                });
            }
            let reason = match (rejected(&error), os) {
                (Some(why), _) => format!(
                    "kernel {} does not accept the program for {}: {why}",
                    facts.host.release, attached.target
                ),
                (None, Some(os)) => facts.host.refusal(step, &attached.target, &os),
                (None, None) => format!("cannot attach to {}: {error}", attached.target),
            };
            tracing::debug!("{}: {reason}: {error}", point.name);
            return Err(ProbeState::Refused { reason });
        }
        attached.programs.push(program.name);
    }
    if attached.programs.is_empty() {
        return Err(ProbeState::Refused {
            reason: format!(
                "{} takes {} arguments here, and no program expects that",
                attached.target,
                args.map_or("an unknown number of".to_owned(), |n| n.to_string())
            ),
        });
    }
    Ok(attached)
}

/// The symbol to attach to.
fn target(facts: &Facts, point: &Point, method: Method) -> Result<String, ProbeState> {
    if method == Method::Tracepoint {
        // The kernel says itself whether it has the tracepoint.
        return Ok(point.symbols[0].to_owned());
    }
    let mut suffixed = None;
    for symbol in point.symbols {
        for found in facts.symbols.candidates(symbol) {
            let exact = found.name == *symbol;
            if method == Method::Kprobe || (exact && facts.btf.has_function(symbol)) {
                return Ok(found.name.to_owned());
            }
            suffixed.get_or_insert_with(|| found.name.to_owned());
        }
        // With hidden symbols the types are all there is to go by.
        if facts.symbols.hidden() && facts.btf.has_function(symbol) {
            return Ok((*symbol).to_owned());
        }
    }
    Err(match suffixed {
        Some(name) => ProbeState::Refused {
            reason: format!(
                "{} is only there as {name}, which has no type information: fentry cannot attach to it",
                strip_suffixes(&name)
            ),
        },
        None => ProbeState::Absent {
            reason: format!(
                "kernel {} has no {}",
                facts.host.release,
                point.symbols.join(" or ")
            ),
        },
    })
}

fn attach_program(
    ebpf: &mut Ebpf,
    facts: &Facts,
    name: &str,
    target: &str,
) -> Result<(), (Step, ProgramError)> {
    let Some(program) = ebpf.program_mut(name) else {
        return Err((Step::LoadTracepoint, ProgramError::NotLoaded));
    };
    let btf = &facts.loader_btf;
    match program {
        Loaded::FEntry(fentry) => {
            fentry
                .load(target, btf)
                .map_err(|e| (Step::LoadFentry, e))?;
            fentry.attach().map_err(|e| (Step::AttachFentry, e))?;
        }
        Loaded::FExit(fexit) => {
            fexit.load(target, btf).map_err(|e| (Step::LoadFentry, e))?;
            fexit.attach().map_err(|e| (Step::AttachFentry, e))?;
        }
        Loaded::KProbe(kprobe) => {
            kprobe.load().map_err(|e| (Step::LoadKprobe, e))?;
            kprobe
                .attach(target, 0)
                .map_err(|e| (Step::AttachKprobe, e))?;
        }
        Loaded::RawTracePoint(tracepoint) => {
            tracepoint.load().map_err(|e| (Step::LoadTracepoint, e))?;
            tracepoint
                .attach(target)
                .map_err(|e| (Step::AttachTracepoint, e))?;
        }
        _ => return Err((Step::LoadTracepoint, ProgramError::UnexpectedProgramType)),
    }
    tracing::debug!(
        "attached {name} to {}{target}",
        if at_return(name) {
            "the return of "
        } else {
            ""
        }
    );
    Ok(())
}

/// Takes the programs out of the kernel again.
pub(super) fn detach(ebpf: &mut Ebpf, attached: &Attached) {
    for name in &attached.programs {
        let result = match ebpf.program_mut(name) {
            Some(Loaded::FEntry(program)) => program.unload(),
            Some(Loaded::FExit(program)) => program.unload(),
            Some(Loaded::KProbe(program)) => program.unload(),
            Some(Loaded::RawTracePoint(program)) => program.unload(),
            _ => Ok(()),
        };
        if let Err(error) = result {
            tracing::warn!("cannot detach {name}: {error}");
        }
    }
}

/// Why the verifier found fault with the program, if it did.
fn rejected(error: &ProgramError) -> Option<&'static str> {
    let ProgramError::LoadError { verifier_log, .. } = error else {
        return None;
    };
    fault(&verifier_log.to_string())
}

/// What the verifier's log means.
fn fault(log: &str) -> Option<&'static str> {
    if log.trim().is_empty() {
        return None;
    }
    let no_helper = ["cannot use helper", "unknown func"]
        .iter()
        .any(|said| log.contains(&format!("{said} bpf_probe_read")));
    Some(if no_helper {
        "it lets no program read kernel memory, as under lockdown=confidentiality; boot with \
         lockdown=integrity at most"
    } else {
        "the verifier rejects it, which is a fault of ours; --log.level debug shows what it said"
    })
}

/// What the kernel said, under the loader's layers of errors.
pub(super) fn os_error(error: &(dyn Error + 'static)) -> Option<io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(code) = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
        {
            return Some(io::Error::from_raw_os_error(code));
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn the_verifier_is_understood() {
        assert_eq!(fault("\n"), None, "refused before it was verified");
        for said in [
            // From 6.9 on, and before.
            "program of this type cannot use helper bpf_probe_read_kernel#113\n",
            "unknown func bpf_probe_read_kernel#113\n",
            // The loader falls back to the older helper.
            "program of this type cannot use helper bpf_probe_read#4\n",
        ] {
            assert!(
                fault(said).is_some_and(|why| why.contains("lockdown")),
                "{said}"
            );
        }
        let log = "invalid read from stack R10 off=-152 size=8";
        assert!(fault(log).is_some_and(|why| why.contains("verifier")));
    }
}
