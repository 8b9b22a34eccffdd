//! Numbers of bytes on the command line.

/// A number of bytes, with a unit or without.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let factor = match text[digits..].trim() {
        "" | "B" => 1_u64,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        unit => return Err(format!("{unit:?} is no unit: give B, KiB, MiB, GiB or TiB")),
    };
    let number: u64 = text[..digits].parse().map_err(|_| "give a number of bytes, such as 900MiB".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "too many bytes".to_owned())
}
