//! A socket within TLS.

use super::error::TlsError;
use super::hello::{self, Hello};
use super::keys::{Maker, ServerKeys, client};
use super::pipe::End;
use flashyard_nvmf::tls::{Channel, SharedKey};
use mio::net::TcpStream;
use s2n_tls::error::{Error, ErrorType};
use s2n_tls_tokio::{TlsAcceptor, TlsStream};
use std::future::Future;
use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Runtime;

/// Bytes that are made into records at once.
const WRITE_BYTES: usize = 64 * 1024;
/// A slice of at least so many bytes becomes records where it lies.
const LONG_BYTES: usize = 16 * 1024;

/// Characters of an identity that are told: a name comes from the other side before it has proved anything.
const TOLD_MAX: usize = 512;

/// First bytes of records of a handshake, and of an alert (RFC 8446, section 5.1).
const BEGINNINGS: [u8; 2] = [22, 21];
/// The alert `decrypt_error` as a record, fatal: for a key that is wrong and for one that is not known alike, so that no client
/// learns which there are (RFC 8446, section 6.2).
const DECRYPT_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 51];

type Handshake = Pin<Box<dyn Future<Output = Result<TlsStream<End>, Error>> + Send>>;

enum State {
    /// The client has not said all of what it offers.
    Listening,
    Shaking(Handshake),
    Open(TlsStream<End>),
    /// Given up, or closed.
    Over,
}

/// The side of a connection, with what it knows of keys.
enum Side {
    /// `chosen` is the identity of the key that the client is to prove.
    Server {
        keys: ServerKeys,
        chosen: Option<Vec<u8>>,
    },
    Client {
        channel: Channel,
    },
}

/// A socket within TLS.
pub(crate) struct Secured {
    socket: TcpStream,
    end: End,
    state: State,
    side: Side,
    /// Bytes of short slices on their way into a record.
    short: Vec<u8>,
}

/// The library waits for some seconds before it tells a side of a failed handshake, which takes a timer. The timer is made and never
/// waited for: a connection that failed is closed at once. The delay hides how long a decryption took that failed, which matters to
/// cipher suites that pad, and those of TLS 1.3 do not.
fn timers() -> Result<&'static Runtime, TlsError> {
    static TIMERS: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = TIMERS.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_time().build());
    made.as_ref().map_err(|error| TlsError::Library(error.to_string()))
}

/// An identity as it may stand in a message.
fn told(identity: &[u8]) -> String {
    String::from_utf8_lossy(identity).chars().take(TOLD_MAX).collect()
}

impl Secured {
    /// The socket of a client that has just come.
    ///
    /// Errors: no timers.
    pub(crate) fn accept(socket: TcpStream, keys: &ServerKeys) -> Result<Self, TlsError> {
        timers()?;
        Ok(Self::new(socket, State::Listening, Side::Server { keys: keys.clone(), chosen: None }))
    }

    /// A socket that has just been connected; the keys are for the same two ends.
    ///
    /// Errors: no keys, or such as the library does not take.
    pub(crate) fn connect(socket: TcpStream, keys: Vec<SharedKey>) -> Result<Self, TlsError> {
        let channel = keys.first().ok_or(TlsError::NoKey)?.channel.clone();
        timers()?;
        let mut secured = Self::new(socket, State::Over, Side::Client { channel });
        secured.begin(client(&keys)?);
        Ok(secured)
    }

    fn new(socket: TcpStream, state: State, side: Side) -> Self {
        Self { socket, end: End::default(), state, side, short: Vec::new() }
    }

    fn begin(&mut self, maker: Maker) {
        let end = self.end.clone();
        // The type is called acceptor, and leads the handshake of whatever connection its maker makes.
        let handshake = async move { TlsAcceptor::new(maker).accept(end).await };
        self.state = State::Shaking(Box::pin(handshake));
    }

    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Goes on with the handshake; returns the two ends of the connection once it is secured.
    ///
    /// Errors: it cannot be secured; the other side has been told, unless it does not speak TLS.
    pub(crate) fn shake_hands(&mut self) -> Result<Option<Channel>, TlsError> {
        let shaken = self.try_shake_hands();
        if shaken.is_err() {
            self.state = State::Over;
            // Best effort: the other side may have gone.
            let _ = self.end.pipe().drain(&mut self.socket);
        }
        shaken
    }

    fn try_shake_hands(&mut self) -> Result<Option<Channel>, TlsError> {
        loop {
            if matches!(self.state, State::Listening) {
                self.listen()?;
            }
            if let Some(stream) = self.go_on()? {
                let channel = self.channel(&stream)?;
                self.state = State::Open(stream);
                self.end.pipe().drain(&mut self.socket).map_err(TlsError::Io)?;
                return Ok(Some(channel));
            }
            let mut pipe = self.end.pipe();
            pipe.drain(&mut self.socket).map_err(TlsError::Io)?;
            if !pipe.fill(&mut self.socket).map_err(TlsError::Io)? {
                return Ok(None);
            }
            if pipe.first.is_some_and(|first| !BEGINNINGS.contains(&first)) {
                return Err(TlsError::NoTls);
            }
        }
    }

    /// Chooses a key, once the client has said what it offers.
    fn listen(&mut self) -> Result<(), TlsError> {
        let Side::Server { keys, chosen } = &mut self.side else { return Ok(()) };
        let mut pipe = self.end.pipe();
        let refusal = match hello::read(pipe.unread()) {
            Hello::Partial if pipe.has_ended => return Err(TlsError::Gone),
            Hello::Partial => return Ok(()),
            Hello::Nonsense => TlsError::NoTls,
            Hello::Offers(offered) => match (keys.choose(&offered), offered.first()) {
                (Some((maker, identity)), _) => {
                    *chosen = Some(identity);
                    drop(pipe);
                    self.begin(maker);
                    return Ok(());
                }
                (None, Some(identity)) => TlsError::UnknownIdentity(told(identity)),
                (None, None) => TlsError::NoKey,
            },
        };
        pipe.push(&DECRYPT_ERROR);
        Err(refusal)
    }

    /// Lets the library go on; returns its stream at the end of the handshake.
    fn go_on(&mut self) -> Result<Option<TlsStream<End>>, TlsError> {
        let State::Shaking(handshake) = &mut self.state else {
            return if matches!(self.state, State::Listening) { Ok(None) } else { Err(TlsError::Gone) };
        };
        let polled = {
            let _timers = timers()?.enter();
            handshake.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        match polled {
            Poll::Ready(Ok(stream)) => Ok(Some(stream)),
            Poll::Ready(Err(error)) => Err(self.refusal(Some(error))),
            // It waits, and not for bytes: it has failed.
            Poll::Pending if !self.end.pipe().take_starved() => Err(self.refusal(None)),
            Poll::Pending => Ok(None),
        }
    }

    /// The two ends of the key that was agreed on.
    fn channel(&self, stream: &TlsStream<End>) -> Result<Channel, TlsError> {
        match &self.side {
            Side::Client { channel } => Ok(channel.clone()),
            Side::Server { keys, .. } => {
                let connection = stream.as_ref();
                let mut identity = vec![0; connection.negotiated_psk_identity_length()?];
                connection.negotiated_psk_identity(&mut identity)?;
                keys.channel(&identity).ok_or(TlsError::NoKey)
            }
        }
    }

    /// Why the handshake has failed; lets the client know.
    fn refusal(&self, error: Option<Error>) -> TlsError {
        let mut pipe = self.end.pipe();
        let Side::Server { chosen, .. } = &self.side else {
            return match error {
                Some(error) if error.kind() == ErrorType::Alert => TlsError::Refused,
                Some(error) if !pipe.has_ended => error.into(),
                _ => TlsError::Gone,
            };
        };
        if pipe.has_ended {
            return TlsError::Gone;
        }
        pipe.push(&DECRYPT_ERROR);
        chosen.as_deref().map_or(TlsError::NoKey, |identity| TlsError::WrongKey(told(identity)))
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TlsStream<End>>> {
        match &mut self.state {
            State::Open(stream) => Ok(Pin::new(stream)),
            State::Listening | State::Shaking(_) => Err(io::ErrorKind::WouldBlock.into()),
            State::Over => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

impl Read for Secured {
    /// Fills `buffer` as far as anything has come: less says that the socket is empty, as with a socket itself.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut into = ReadBuf::new(buffer);
        loop {
            let before = into.filled().len();
            match self.stream()?.poll_read(&mut Context::from_waker(Waker::noop()), &mut into) {
                Poll::Ready(Ok(())) => {
                    // Nothing more: it was closed.
                    if into.remaining() == 0 || into.filled().len() == before {
                        return Ok(into.filled().len());
                    }
                }
                Poll::Ready(Err(error)) => {
                    let has_ended = self.end.pipe().has_ended;
                    self.state = State::Over;
                    // A side may go without a word of goodbye.
                    return if has_ended { Ok(into.filled().len()) } else { Err(error) };
                }
                Poll::Pending => {
                    if !self.end.pipe().fill(&mut self.socket)? {
                        let count = into.filled().len();
                        return if count > 0 { Ok(count) } else { Err(io::ErrorKind::WouldBlock.into()) };
                    }
                }
            }
        }
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    /// Takes bytes once everything before them is sent.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.stream()?;
        if !self.end.pipe().drain(&mut self.socket)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut short = std::mem::take(&mut self.short);
        short.clear();
        let bytes: &[u8] = match slices.first() {
            Some(first) if first.len() >= LONG_BYTES => &first[..first.len().min(WRITE_BYTES)],
            _ => {
                for slice in slices {
                    let room = WRITE_BYTES - short.len();
                    short.extend_from_slice(&slice[..slice.len().min(room)]);
                }
                &short
            }
        };
        let written = self.stream()?.poll_write(&mut Context::from_waker(Waker::noop()), bytes);
        self.short = short;
        let Poll::Ready(written) = written else { return Err(io::ErrorKind::WouldBlock.into()) };
        let count = written?;
        self.end.pipe().drain(&mut self.socket)?;
        Ok(count)
    }

    /// Sends the records that wait.
    fn flush(&mut self) -> io::Result<()> {
        if self.end.pipe().drain(&mut self.socket)? { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

/// Says goodbye, as far as the socket takes it.
impl Drop for Secured {
    fn drop(&mut self) {
        let _timers = timers().map(Runtime::enter);
        if let Ok(stream) = self.stream()
            && stream.poll_shutdown(&mut Context::from_waker(Waker::noop())).is_ready()
        {
            let _ = self.end.pipe().drain(&mut self.socket);
        }
    }
}
