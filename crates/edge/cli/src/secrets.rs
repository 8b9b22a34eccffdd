//! Files with secrets: read only if they are kept from others.

use anyhow::{Context, Result, ensure};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The rights of group and others.
const OF_OTHERS: u32 = 0o077;

/// Refuses a file that holds secrets and that others may read, write or run. `flag` names it in the message. What is no
/// file, such as a pipe, cannot hold data of others.
pub(crate) fn check_private(flag: &str, path: &Path) -> Result<()> {
    let shown = path.display();
    let found = std::fs::metadata(path).with_context(|| format!("{flag} {shown}: cannot be looked at"))?;
    let mode = found.permissions().mode() & 0o777;
    ensure!(
        !found.is_file() || mode & OF_OTHERS == 0,
        "{flag} {shown}: it holds secrets, and its mode {mode:03o} lets other users at them; chmod 600 {shown}"
    );
    Ok(())
}

/// The text of a file that holds a secret; `-` is the standard input.
pub(crate) fn read_private(flag: &str, path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).with_context(|| format!("{flag} -: nothing can be read"))?;
        return Ok(text);
    }
    check_private(flag, path)?;
    std::fs::read_to_string(path).with_context(|| format!("{flag} {}: cannot be read", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_others_may_read_is_refused_and_the_way_out_is_named() {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("key");
        fs::write(&path, "DHHC-1:00:x:\n").expect("there is room");
        for mode in [0o644, 0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
            let refused = read_private("--secret-file", &path).expect_err("others may look").to_string();
            let shown = path.display();
            assert!(refused.starts_with(&format!("--secret-file {shown}: ")), "{refused}");
            assert!(
                refused.contains(&format!("{mode:03o}")) && refused.ends_with(&format!("chmod 600 {shown}")),
                "{refused}"
            );
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        assert_eq!(read_private("--secret-file", &path).expect("it is private"), "DHHC-1:00:x:\n");
        let missing = read_private("--secret-file", &directory.path().join("none")).expect_err("it is not there");
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
