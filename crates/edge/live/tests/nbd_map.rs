//! The map of a drive over NBD: what clients are told of blocks before and after they write and free them.

mod crowd;
mod small;

use crowd::{dial, read, request, serve, until};
use flashyard_live::{Limits, Tempo};
use flashyard_served::Control;
use flashyard_units::DriveId;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

const BLOCK: u64 = 4096;
const HOLE: u32 = 3;
const ZEROS: u32 = 2;
const DATA: u32 = 0;

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &number.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// The reply to an option: its kind, and its data.
fn option_reply(socket: &mut TcpStream) -> (u32, Vec<u8>) {
    let header = read(socket, 20);
    let number = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
    (number(12), read(socket, number(16) as usize))
}

/// A client of drive 0 with structured replies and its map, and the number of blocks of the drive.
fn client(address: SocketAddr) -> (TcpStream, u64) {
    let mut socket = dial(address);
    read(&mut socket, 18);
    let select = [text("drive-0"), vec![0, 0, 0, 1], text("base:allocation")].concat();
    let go = [text("drive-0"), vec![0, 0]].concat();
    let said = [vec![0, 0, 0, 3], option(8, &[]), option(10, &select), option(7, &go)].concat();
    socket.write_all(&said).expect("the server listens");
    let kinds: Vec<_> = (0..6).map(|_| option_reply(&mut socket)).collect();
    assert_eq!(kinds.iter().map(|reply| reply.0).collect::<Vec<_>>(), [1, 4, 1, 3, 3, 1]);
    let size = u64::from_be_bytes(kinds[3].1[2..10].try_into().expect("eight bytes"));
    (socket, size / BLOCK)
}

/// The next chunk: kind, whether it is the last one, content.
fn chunk(socket: &mut TcpStream) -> (u16, bool, Vec<u8>) {
    let header = read(socket, 20);
    assert_eq!(header[..4], 0x668E_33EF_u32.to_be_bytes());
    let length = u32::from_be_bytes(header[16..].try_into().expect("four bytes"));
    (u16::from_be_bytes([header[6], header[7]]), header[5] == 1, read(socket, length as usize))
}

/// States of the blocks of a range, one for each, as far as one answer goes.
fn states(socket: &mut TcpStream, first: u64, blocks: u64) -> Vec<u32> {
    socket.write_all(&request(7, 1, first * BLOCK, (blocks * BLOCK) as u32)).expect("the server listens");
    let (kind, is_last, content) = chunk(socket);
    assert_eq!((kind, is_last), (5, true));
    let words: Vec<u32> =
        content.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four bytes"))).collect();
    words[1..].chunks(2).flat_map(|extent| vec![extent[1]; extent[0] as usize / BLOCK as usize]).collect()
}

fn done(socket: &mut TcpStream, asked: &[u8]) {
    socket.write_all(asked).expect("the server listens");
    assert_eq!(read(socket, 16)[4..8], [0; 4]);
}

#[test]
fn blocks_that_were_written_are_data_and_freed_ones_are_holes() {
    serve(Limits::default(), Tempo::Off, |served| {
        let (mut socket, blocks) = client(served.nbd);
        // Half of the drive is filled, with zeros.
        let before = states(&mut socket, blocks / 2 - 500, 1000);
        assert_eq!((before[0], before[999], before.len()), (ZEROS, HOLE, 1000));
        assert!(before.is_sorted());

        let first = blocks - 100;
        let write = [request(1, 2, first * BLOCK, 8 * BLOCK as u32), vec![7; 8 * BLOCK as usize]].concat();
        done(&mut socket, &write);
        assert_eq!(states(&mut socket, first - 1, 10), [vec![HOLE], vec![DATA; 8], vec![HOLE]].concat());
        done(&mut socket, &request(4, 3, (first + 2) * BLOCK, BLOCK as u32));
        let kept = [vec![DATA; 2], vec![HOLE], vec![DATA; 5]].concat();
        assert_eq!(states(&mut socket, first, 8), kept);
        assert_eq!(states(&mut socket, 0, blocks).len(), 8192.min(blocks as usize), "an answer has its end");

        // Zeros that need not be a hole are written.
        let mut keep = request(6, 4, first * BLOCK, BLOCK as u32);
        keep[5] = 2;
        done(&mut socket, &keep);
        assert_eq!(states(&mut socket, first, 2), [ZEROS, DATA]);

        socket.write_all(&request(0, 5, first * BLOCK, 8 * BLOCK as u32)).expect("the server listens");
        let (mut data, mut kinds) = (Vec::new(), Vec::new());
        loop {
            let (kind, is_last, content) = chunk(&mut socket);
            kinds.push(kind);
            match kind {
                1 => data.extend_from_slice(&content[8..]),
                2 => data.extend(vec![0; u32::from_be_bytes(content[8..].try_into().expect("a length")) as usize]),
                _ => panic!("a chunk of kind {kind}"),
            }
            if is_last {
                break;
            }
        }
        assert_eq!(kinds, [2, 1, 2, 1]);
        let byte = |block: usize| if [0, 2].contains(&block) { 0 } else { 7 };
        assert!((0..8).all(|block| data[block * BLOCK as usize..][..BLOCK as usize] == [byte(block); BLOCK as usize]));
    });
}

#[test]
fn the_map_of_what_a_smaller_size_has_cut_off_is_not_told() {
    serve(Limits::default(), Tempo::Off, |served| {
        let (mut socket, blocks) = client(served.nbd);
        // All are read at once, and a few of them are answered in a turn.
        let (queries, most) = (2000, blocks.min(8192));
        let query = request(7, 1, (blocks - most) * BLOCK, (most * BLOCK) as u32);
        socket.write_all(&query.repeat(queries)).expect("the server listens");
        assert_eq!(chunk(&mut socket).0, 5);
        let resized = served.handle.call(move |engine| engine.resize(DriveId::new(0), 1, (blocks - 100) * BLOCK));
        let kinds: Vec<u16> = (1..queries).map(|_| chunk(&mut socket).0).collect();
        let error = 1 << 15 | 1;
        assert!(kinds.iter().all(|kind| [5, error].contains(kind)) && kinds.is_sorted());
        assert_eq!(kinds.last(), Some(&error));
        assert_eq!(resized.expect("it serves").recv().expect("it comes to an end"), Ok(1));
        assert_eq!(states(&mut socket, blocks - 101, 1), [HOLE], "the rest of it is told as before");
    });
}

#[test]
fn a_client_that_asks_for_the_map_again_and_again_gets_all_answers_and_keeps_others_waiting_for_none() {
    serve(Limits::default(), Tempo::Off, |served| {
        let ((mut socket, blocks), (mut other, _)) = (client(served.nbd), client(served.nbd));
        let queries = 3000;
        let query = request(7, 1, 0, (blocks.min(8192) * BLOCK) as u32);
        let mut listener = socket.try_clone().expect("a socket has two ends");
        std::thread::scope(|scope| {
            scope.spawn(|| (0..queries).for_each(|_| assert_eq!(chunk(&mut listener).0, 5)));
            socket.write_all(&query.repeat(queries)).expect("the server listens");
            for _ in 0..20 {
                assert_eq!(states(&mut other, blocks - 1, 1), [HOLE]);
            }
        });
        until("nothing is held", || served.in_flight_bytes() == 0);
    });
}

#[test]
fn an_export_whose_drive_is_pulled_is_refused_in_words() {
    serve(Limits::default(), Tempo::Off, |served| {
        let (mut attached, _) = client(served.nbd);
        let mut socket = dial(served.nbd);
        read(&mut socket, 18);
        socket.write_all(&[0, 0, 0, 3]).expect("the server listens");
        let pulled = served.handle.call(|engine| engine.control(Control::Pull { drive: DriveId::new(0) }));
        pulled.expect("it serves").expect("it can be pulled");
        assert!(crowd::is_closed(&mut attached), "its connection ends");
        let go = [text("drive-0"), vec![0, 0]].concat();
        let mut is_refused = || {
            socket.write_all(&option(7, &go)).expect("this client had no export yet");
            let (kind, words) = option_reply(&mut socket);
            assert_eq!(
                (kind, String::from_utf8_lossy(&words).into_owned()),
                (1 << 31 | 6, "the drive of that export is away".into())
            );
        };
        is_refused();
        // It may get another size, and is away all the same.
        let resized = served.handle.call(|engine| engine.resize(DriveId::new(0), 1, BLOCK)).expect("it serves");
        served.handle.call(|_| ()).expect("another turn has begun");
        is_refused();
        assert!(resized.try_recv().is_err(), "its space is deallocated once it is back");
    });
}
