//! Sockets in the file system, for their owner only.

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Connections that may wait to be accepted. Source: \[X\] as the standard library has it
const BACKLOG: i32 = 128;

/// The name of a socket in the file system, which goes when this does.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// Device and inode: something else may have this name by now.
    identity: (u64, u64),
}

impl SocketPath {
    /// Listens at `path`. A socket without a server, which a killed one left behind, is replaced; anything else that
    /// is there stays.
    ///
    /// Errors: somebody serves there, something that is no socket is there, or the operating system refuses.
    pub fn listen(path: &Path) -> io::Result<(Self, UnixListener)> {
        remove_abandoned(path)?;
        let name = SocketAddrUnix::new(path)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // Linux makes the name with the mode of the socket: others cannot reach it at any time.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        bind(&socket, &name)?;
        let found = fs::symlink_metadata(path)?;
        let this = Self { path: path.to_owned(), identity: identity(&found) };
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        }
        listen(&socket, BACKLOG)?;
        Ok((this, UnixListener::from(socket)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let is_ours = |found: Metadata| found.file_type().is_socket() && identity(&found) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::debug!(%error, "the socket was gone");
        }
    }
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn remove_abandoned(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.file_type(),
    };
    if !found.is_socket() {
        let what = match () {
            () if found.is_file() => "a regular file",
            () if found.is_dir() => "a directory",
            () if found.is_symlink() => "a symbolic link",
            () => "no socket",
        };
        let message = format!("there is {what}, which is not removed; give the path of a socket, or one that is free");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another server listens there; give another path")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        SocketPath::listen(path).expect_err("it must stay").to_string()
    }

    #[test]
    fn what_is_no_socket_stays() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("precious");
        fs::write(&file, "precious").expect("there is room");
        assert!(refused(&file).contains("there is a regular file, which is not removed"), "{}", refused(&file));
        assert!(refused(directory.path()).contains("a directory"));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).expect("there is room");
        assert!(refused(&link).contains("a symbolic link"));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "precious");
    }

    #[test]
    fn a_socket_is_private_is_replaced_when_nobody_serves_it_and_goes_with_its_server() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("socket");
        // The socket that a killed server leaves behind.
        drop(UnixListener::bind(&path).expect("it is free"));
        let (socket, listener) = SocketPath::listen(&path).expect("nobody serves there");
        assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, 0o600);
        assert!(refused(&path).contains("another server listens there"));
        UnixStream::connect(&path).expect("somebody listens");
        listener.accept().expect("somebody has connected");
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_took_the_place_of_a_socket_stays_when_the_server_goes() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("socket");
        let (socket, _listener) = SocketPath::listen(&path).expect("it is free");
        fs::remove_file(&path).expect("it is ours");
        fs::write(&path, "precious").expect("there is room");
        drop(socket);
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "precious");
    }
}
