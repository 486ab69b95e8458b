//! True numbers of tests, read from what test programs print.

use std::ops::AddAssign;

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// Test programs that said how they ended.
    pub(crate) programs: u64,
}

impl Counts {
    /// Sums the lines `test result: ok. 3 passed; 0 failed; …` of an output.
    pub(crate) fn read(output: &str) -> Self {
        let mut counts = Self::default();
        for line in output.lines() {
            if let Some(one) = result_line(line) {
                counts += one;
            }
        }
        counts
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.programs += other.programs;
    }
}

fn result_line(line: &str) -> Option<Counts> {
    let (_, rest) = line
        .trim()
        .strip_prefix("test result: ")?
        .split_once(". ")?;
    let number = |what: &str| -> Option<u64> {
        rest.split(';')
            .find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
    };
    Some(Counts {
        passed: number(" passed")?,
        failed: number(" failed")?,
        programs: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn results_are_summed() {
        let output = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test a ... FAILED\n\
            test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n\
            test result: nonsense\n";
        assert_eq!(
            Counts::read(output),
            Counts {
                passed: 4,
                failed: 2,
                programs: 2
            }
        );
        assert_eq!(Counts::read("no tests"), Counts::default());
    }
}
