//! Access: answered requests and allowed commands.
//!
//! A browser runs pages of strangers beside ours. They reach this server by its address, or by a name of their own
//! that they point at it. Such a request carries that name as `Host`, and a command from their page their `Origin`.
//! Other users of the machine reach it as well: a command carries a token that only the owner has seen.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A refusal: status and what to do about it.
pub(crate) type Refusal = (StatusCode, String);

/// The token that commands have to carry. Each server makes its own.
#[derive(Clone)]
pub(crate) struct Token(String);

/// Random bytes of a token: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

impl Token {
    /// A token that was never there before.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Refuses commands without the token.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let is_it = match (given.next(), given.next()) {
            (Some(value), None) => value.as_bytes().strip_prefix(b"Bearer ").is_some_and(|token| self.is(token)),
            _ => false,
        };
        let words = "commands need the token of the address that the server printed: Authorization: Bearer TOKEN";
        if is_it { Ok(()) } else { Err((StatusCode::UNAUTHORIZED, words.to_owned())) }
    }

    /// Compares in a time that does not tell where the two differ.
    fn is(&self, token: &[u8]) -> bool {
        let own = self.0.as_bytes();
        own.len() == token.len() && own.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }
}

/// Never shows the token.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Refuses requests that name the server by anything but an address or `localhost`.
///
/// The owner of a name can point it anywhere; an address cannot be pointed.
pub(crate) fn host(headers: &HeaderMap) -> Result<&str, Refusal> {
    let refused = || {
        let message = "the server is to be named by its address or as localhost".to_owned();
        (StatusCode::MISDIRECTED_REQUEST, message)
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(value), None) = (hosts.next(), hosts.next()) else { return Err(refused()) };
    let text = value.to_str().map_err(|_| refused())?;
    let authority: Authority = text.parse().map_err(|_| refused())?;
    let name = authority.host();
    let inside = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match inside {
        Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<IpAddr>().is_ok(),
    };
    (address || name.eq_ignore_ascii_case("localhost")).then_some(text).ok_or_else(refused)
}

/// Refuses commands from other machines, from pages of other origins, and what a form of such a page could send.
///
/// Programs on this machine that are no browsers send no `Origin`; they are let through.
pub(crate) fn command(headers: &HeaderMap, host: &str, peer: SocketAddr) -> Result<(), Refusal> {
    let refuse = |status, text: &str| Err((status, text.to_owned()));
    if !peer.ip().to_canonical().is_loopback() {
        return refuse(StatusCode::FORBIDDEN, "commands are taken from the machine itself only");
    }
    let own = format!("http://{host}");
    let is_own = |value: &header::HeaderValue| value.as_bytes().eq_ignore_ascii_case(own.as_bytes());
    if !headers.get_all(header::ORIGIN).iter().all(is_own) {
        return refuse(StatusCode::FORBIDDEN, "commands are taken from the page of this server only");
    }
    let site = headers.get("sec-fetch-site").map(header::HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin") {
        return refuse(StatusCode::FORBIDDEN, "commands are taken from the page of this server only");
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a command is JSON: set Content-Type: application/json");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |&(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse::<header::HeaderValue>().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_server_is_named_by_an_address_or_as_localhost() {
        for name in ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "localhost:8080", "LocalHost", "192.168.7.3:80"] {
            assert_eq!(host(&headers(&[("host", name)])), Ok(name));
        }
        for name in ["evil.example:8080", "127.0.0.1.evil.example", "", "localhost.evil.example", "[::1", "a@b:1"] {
            assert!(host(&headers(&[("host", name)])).is_err(), "{name}");
        }
        assert!(host(&headers(&[])).is_err());
        assert!(host(&headers(&[("host", "localhost"), ("host", "evil.example")])).is_err());
    }

    /// Status of a command from the machine itself to `127.0.0.1:8080`, 200 when it is let through.
    fn status(pairs: &[(&str, &str)]) -> u16 {
        let peer = SocketAddr::from(([127, 0, 0, 1], 5000));
        command(&headers(pairs), "127.0.0.1:8080", peer).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn commands_come_from_our_own_page_or_from_a_program() {
        let json = ("content-type", "application/json");
        assert_eq!(status(&[json]), 200);
        assert_eq!(status(&[json, ("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "same-origin")]), 200);
        assert_eq!(status(&[("content-type", "application/json; charset=utf-8")]), 200);
    }

    #[test]
    fn commands_of_other_pages_are_refused() {
        let json = ("content-type", "application/json");
        for origin in ["http://evil.example", "null", "http://127.0.0.1:8081", "https://127.0.0.1:8080", ""] {
            assert_eq!(status(&[json, ("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(status(&[json, ("origin", "http://127.0.0.1:8080"), ("origin", "http://evil.example")]), 403);
        assert_eq!(status(&[json, ("sec-fetch-site", "cross-site")]), 403);
        // Types that a form can send unasked.
        for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
            assert_eq!(status(&[("content-type", kind)]), 415, "{kind}");
        }
        assert_eq!(status(&[]), 415);
    }

    #[test]
    fn commands_need_the_token_and_nothing_but_the_token() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(token.text(), other.text());
        assert_eq!((token.text().len(), format!("{token:?}").as_str()), (32, "Token"));
        let status = |pairs: &[(&str, &str)]| token.check(&headers(pairs)).map_err(|(status, _)| status.as_u16());
        let bearer = |text: &str| format!("Bearer {text}");
        assert_eq!(status(&[("authorization", &bearer(token.text()))]), Ok(()));
        for wrong in [bearer(other.text()), bearer(""), token.text().to_owned(), bearer(&token.text()[1..])] {
            assert_eq!(status(&[("authorization", &wrong)]), Err(401), "{wrong}");
        }
        assert_eq!(status(&[]), Err(401));
        let twice = ("authorization", &*bearer(token.text()));
        assert_eq!(status(&[twice, twice]), Err(401));
    }

    #[test]
    fn commands_of_other_machines_are_refused() {
        let json = headers(&[("content-type", "application/json")]);
        let from = |address: &str| command(&json, "192.168.7.3:80", address.parse().unwrap());
        assert_eq!(from("192.168.7.9:5000").unwrap_err().0, StatusCode::FORBIDDEN);
        assert_eq!(from("[::1]:5000"), Ok(()));
        assert_eq!(from("[::ffff:127.0.0.1]:5000"), Ok(()));
    }
}
