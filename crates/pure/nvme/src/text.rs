//! Text fields: padded ASCII, and NVMe Qualified Names.

use thiserror::Error;

/// The name under which every discovery controller can be found.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Most bytes of a name, without its terminating zero (Base 2.0, section 4.5).
pub const NQN_BYTES_MAX: usize = 223;

/// Why bytes are no NVMe Qualified Name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NqnError {
    /// No terminating zero within the field, or more than [`NQN_BYTES_MAX`] bytes.
    #[error("an NVMe qualified name has at most {NQN_BYTES_MAX} bytes")]
    TooLong,
    /// Not UTF-8, or a control character inside.
    #[error("an NVMe qualified name is printable UTF-8")]
    NotText,
    /// Does not begin with `nqn.` and something after it.
    #[error("an NVMe qualified name begins with `nqn.`")]
    NoPrefix,
}

/// `text` in `N` bytes, cut or padded with spaces on the right, as serial and model numbers are.
pub fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    for (place, byte) in field.iter_mut().zip(text.bytes()) {
        *place = if byte.is_ascii_graphic() { byte } else { b' ' };
    }
    field
}

/// `text` in `N` bytes, cut or followed by zeros, as names and addresses are. The last byte is always zero.
pub fn zero_terminated<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let len = text.len().min(N.saturating_sub(1));
    field[..len].copy_from_slice(&text.as_bytes()[..len]);
    field
}

/// The text of a padded field, without its padding; what is not ASCII is shown as `?`.
pub fn unpadded(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text: String = field[..end].iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '?' }).collect();
    text.trim_end().to_owned()
}

/// The name in a zero-terminated field.
///
/// Errors: the field breaks a rule of [`check_nqn`] or has no terminating zero.
pub fn nqn_of(field: &[u8]) -> Result<&str, NqnError> {
    let name = name_of(field)?;
    check_nqn(name)?;
    Ok(name)
}

/// The name in a zero-terminated field, whatever it begins with: there are hosts whose name lacks the prefix, and hosts
/// without a name (SPDK's `spdk_nvme_perf`), whose field is empty.
///
/// Errors: too long, not printable, or without a terminating zero.
pub fn name_of(field: &[u8]) -> Result<&str, NqnError> {
    let end = field.iter().position(|byte| *byte == 0).ok_or(NqnError::TooLong)?;
    let name = std::str::from_utf8(&field[..end]).map_err(|_| NqnError::NotText)?;
    match check_nqn(name) {
        Err(NqnError::NoPrefix) | Ok(()) => Ok(name),
        Err(error) => Err(error),
    }
}

/// Whether `name` has the form of an NVMe Qualified Name.
///
/// Errors: too long, not printable, or without its prefix.
pub fn check_nqn(name: &str) -> Result<(), NqnError> {
    if name.len() > NQN_BYTES_MAX {
        Err(NqnError::TooLong)
    } else if name.chars().any(char::is_control) {
        Err(NqnError::NotText)
    } else if !name.starts_with("nqn.") || name.len() == 4 {
        Err(NqnError::NoPrefix)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_padded_and_cut() {
        assert_eq!(&padded::<6>("ab"), b"ab    ");
        assert_eq!(&padded::<2>("abc"), b"ab");
        assert_eq!(&zero_terminated::<4>("abcd"), b"abc\0");
        assert_eq!(unpadded(b"ab \xFF  "), "ab ?");
    }

    #[test]
    fn names_need_prefix_terminator_and_print() {
        assert_eq!(nqn_of(b"nqn.x\0junk"), Ok("nqn.x"));
        assert_eq!(nqn_of(b"nqn.x"), Err(NqnError::TooLong));
        assert_eq!(nqn_of(b"nqn.\0"), Err(NqnError::NoPrefix));
        assert_eq!(name_of(b"2014-08.x\0"), Ok("2014-08.x"));
        assert_eq!(name_of(b"\0"), Ok(""));
        assert_eq!(nqn_of(b"nqn.\n\0"), Err(NqnError::NotText));
        assert_eq!(nqn_of(b"nqn.\xFF\0"), Err(NqnError::NotText));
        assert_eq!(check_nqn(&format!("nqn.{}", "a".repeat(220))), Err(NqnError::TooLong));
    }
}
