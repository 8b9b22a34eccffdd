//! A capture file with frames of our own making: Ethernet, IPv4, TCP.

use std::collections::BTreeMap;

/// Payload of a segment at most: what a loopback interface carries.
const SEGMENT_BYTES: usize = 16_000;

const TARGET_PORT: u16 = 4420;

/// A capture in the classic format of libpcap.
pub(crate) struct Capture {
    bytes: Vec<u8>,
    frames: u32,
    /// By port of the host: the next sequence numbers of host and target.
    connections: BTreeMap<u16, [u32; 2]>,
}

impl Capture {
    pub(crate) fn new() -> Self {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&0xA1B2_C3D4_u32.to_le_bytes());
        bytes.extend_from_slice(&[2, 0, 4, 0]);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&0x4_0000_u32.to_le_bytes());
        bytes.extend_from_slice(&1_u32.to_le_bytes());
        Self { bytes, frames: 0, connections: BTreeMap::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `payload` of the connection from `port`, in as many segments as it needs.
    pub(crate) fn segment(&mut self, port: u16, from_host: bool, payload: &[u8]) {
        if !self.connections.contains_key(&port) {
            const SYN: u8 = 0x02;
            const ACK: u8 = 0x10;
            self.connections.insert(port, [1000, 2000]);
            self.frame(port, true, SYN, &[]);
            self.frame(port, false, SYN | ACK, &[]);
            self.connections.insert(port, [1001, 2001]);
        }
        for piece in payload.chunks(SEGMENT_BYTES) {
            const PUSH_ACK: u8 = 0x18;
            self.frame(port, from_host, PUSH_ACK, piece);
            if let Some(next) = self.connections.get_mut(&port) {
                next[usize::from(!from_host)] += piece.len() as u32;
            }
        }
    }

    fn frame(&mut self, port: u16, from_host: bool, flags: u8, payload: &[u8]) {
        let next = self.connections[&port];
        let (own, other) = if from_host { (next[0], next[1]) } else { (next[1], next[0]) };
        let addresses = [[192, 0, 2, 2], [192, 0, 2, 1]];
        let (source, destination) = if from_host { (0, 1) } else { (1, 0) };
        let ports = [port, TARGET_PORT];
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
        let total = (40 + payload.len()) as u16;
        frame.extend_from_slice(&[0x45, 0]);
        frame.extend_from_slice(&total.to_be_bytes());
        frame.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        frame.extend_from_slice(&addresses[source]);
        frame.extend_from_slice(&addresses[destination]);
        frame.extend_from_slice(&ports[source].to_be_bytes());
        frame.extend_from_slice(&ports[destination].to_be_bytes());
        frame.extend_from_slice(&own.to_be_bytes());
        frame.extend_from_slice(&other.to_be_bytes());
        frame.extend_from_slice(&[0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
        frame.extend_from_slice(payload);
        self.frames += 1;
        let len = (frame.len() as u32).to_le_bytes();
        self.bytes.extend_from_slice(&0_u32.to_le_bytes());
        self.bytes.extend_from_slice(&(self.frames * 10).to_le_bytes());
        self.bytes.extend_from_slice(&len);
        self.bytes.extend_from_slice(&len);
        self.bytes.extend_from_slice(&frame);
    }
}
