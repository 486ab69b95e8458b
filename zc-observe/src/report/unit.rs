//! How numbers are written for people.

use bytesize::ByteSize;

/// Bytes in powers of ten: `19.7 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().si().to_string()
}

/// A count with its digits in groups of three: `14,448`.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, rounded down so that only the whole is 100 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    let share = u128::from(part) * 100 / u128::from(whole);
    if share == 0 && part > 0 {
        "<1 %".to_owned()
    } else {
        format!("{share} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn shares_never_round_up_to_all_or_down_to_none() {
        assert_eq!(percent(999, 1000), "99 %");
        assert_eq!(percent(1, 1000), "<1 %");
        assert_eq!(percent(1000, 1000), "100 %");
        assert_eq!(percent(0, 0), "0 %");
    }
}
