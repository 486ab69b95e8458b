//! Takes the DWARF out of an eBPF object: nothing reads it, and it is most of the file.
//! BTF, programs, maps, licence, constants and symbols stay.

use anyhow::{Context, Result};
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

/// The object without its `.debug_*` sections and what only they need.
pub(crate) fn strip_debug(object: &[u8]) -> Result<Vec<u8>> {
    let mut elf = Builder::read(object).context("cannot read the linked eBPF object")?;
    let is_debug = |name: &[u8]| {
        let name = name.strip_prefix(b".rel").unwrap_or(name);
        name.starts_with(b".debug_") || name == b".llvm_addrsig"
    };
    for section in &mut elf.sections {
        if is_debug(&section.name) {
            section.delete = true;
        }
    }
    elf.delete_orphans();
    // LLVM keeps the names of sections and symbols in one table; the writer wants two.
    if !elf
        .sections
        .iter()
        .any(|section| matches!(section.data, SectionData::SectionString))
    {
        let names = elf.sections.add();
        names.name = b".shstrtab".as_slice().into();
        names.sh_type = SHT_STRTAB;
        names.sh_addralign = 1;
        names.data = SectionData::SectionString;
    }
    elf.set_section_sizes();
    let mut stripped = Vec::new();
    elf.write(&mut stripped)
        .context("cannot write the stripped eBPF object")?;
    Ok(stripped)
}
