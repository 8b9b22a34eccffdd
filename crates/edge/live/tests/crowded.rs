//! Clients that would take the server away from the others, or just leave: bare sockets against both front ends.

mod crowd;
mod small;

use crowd::{capsule, dial, get_log_page, initialize_request, is_closed, nbd, nvme, read, request, serve, until};
use flashyard_live::{Limits, Tempo};
use std::io::Write;
use std::net::Shutdown;
use std::time::Duration;

#[test]
fn connections_whose_last_words_and_end_come_together_end() {
    serve(Limits::default(), Tempo::Off, |served| {
        let mut hosts: Vec<_> = (0..10).map(|_| nvme(served.nvme)).collect();
        let mut clients: Vec<_> = (0..10).map(|_| nbd(served.nbd)).collect();
        assert_eq!(served.connections(), 20);
        served.while_it_stands_still(|| {
            let mut keep_alive = [0; 64];
            keep_alive[0] = 0x18;
            for host in &mut hosts {
                host.write_all(&capsule(keep_alive, &[])).expect("the socket takes it");
                host.shutdown(Shutdown::Write).expect("it is open");
            }
            for client in &mut clients {
                client.write_all(&request(3, 1, 0, 0)).expect("the socket takes it");
                client.shutdown(Shutdown::Write).expect("it is open");
            }
            // Requests sent must have come when the engine looks: the loopback delivers at once, or in a moment.
            std::thread::sleep(Duration::from_millis(50));
        });
        until("the server closes them all", || served.connections() == 0);
        assert!(hosts.iter_mut().chain(&mut clients).all(is_closed));
    });
}

#[test]
fn there_are_no_more_connections_than_may_be_and_places_are_free_again() {
    let limits = Limits { connections: 5, ..Limits::default() };
    serve(limits, Tempo::Off, |served| {
        for address in [served.nvme, served.nbd] {
            let connect = || if address == served.nbd { nbd(address) } else { nvme(address) };
            let mut open: Vec<_> = (0..5).map(|_| connect()).collect();
            for _ in 0..20 {
                assert!(is_closed(&mut dial(address)), "there are five");
            }
            open.truncate(2);
            until("the places of three are free", || served.connections() == 2);
            open.extend((0..3).map(|_| connect()));
            assert!(is_closed(&mut dial(address)));
            drop(open);
            until("all are free", || served.connections() == 0);
        }
    });
}

#[test]
fn a_connection_that_does_not_become_a_session_ends_and_one_that_did_stays() {
    let limits = Limits { set_up: Duration::from_millis(300), ..Limits::default() };
    serve(limits, Tempo::Off, |served| {
        let (_host, mut client) = (nvme(served.nvme), nbd(served.nbd));
        let mut idle = [dial(served.nvme), dial(served.nvme), dial(served.nvme), dial(served.nbd), dial(served.nbd)];
        idle[1].write_all(&initialize_request()[..60]).expect("the server listens");
        idle[2].write_all(&initialize_request()).expect("the server listens");
        idle[4].write_all(&[0, 0, 0, 3]).expect("the server listens");
        assert!(idle.iter_mut().all(is_closed));
        until("two are left", || served.connections() == 2);
        client.write_all(&request(0, 9, 0, 4096)).expect("the server listens");
        assert_eq!(read(&mut client, 16 + 4096)[4..8], [0; 4], "it was idle for longer");
    });
}

#[test]
fn a_client_that_is_told_why_it_is_left_and_does_not_listen_is_left_all_the_same() {
    let limits = Limits { set_up: Duration::from_millis(300), ..Limits::default() };
    serve(limits, Tempo::Off, |served| {
        let mut host = nvme(served.nvme);
        // Answers for more than any socket takes, and then what is no PDU.
        for number in 0..24 {
            host.write_all(&get_log_page(number, 1 << 20)).expect("the server listens");
        }
        host.write_all(&[0xFF; 8]).expect("the server listens");
        until("the server gives it up", || served.connections() == 0);
        until("and what it held", || served.in_flight_bytes() == 0);
    });
}

/// 16 MiB for all.
const LITTLE: Limits = Limits { connections: 100, in_flight_bytes: 16 << 20, set_up: Duration::from_secs(10) };

#[test]
fn clients_that_do_not_read_hold_no_more_than_there_is_and_no_processor() {
    serve(LITTLE, Tempo::Off, |served| {
        let mut deaf: Vec<_> = (0..6).map(|_| nbd(served.nbd)).collect();
        let mut hosts: Vec<_> = (0..3).map(|_| nvme(served.nvme)).collect();
        for client in &mut deaf {
            (0..20).for_each(|cookie| client.write_all(&request(0, cookie, 0, 1 << 20)).expect("the server listens"));
        }
        for host in &mut hosts {
            (0..20).for_each(|number| host.write_all(&get_log_page(number, 1 << 20)).expect("the server listens"));
        }
        let mut other = nbd(served.nbd);
        let mut most = 0;
        for _ in 0..50 {
            other.write_all(&request(0, 7, 0, 4096)).expect("the server listens");
            read(&mut other, 16 + 4096);
            most = most.max(served.in_flight_bytes());
        }
        // Of each connection one answer of a megabyte may go beyond: it is known when it is there.
        assert!((4 << 20..=20 << 20).contains(&most), "{most} bytes");
        let turns = served.turns_of_a_while();
        assert!(turns < 10_000, "{turns} turns in half a second: it runs in circles");
        // A client that reads gets everything.
        std::thread::scope(|scope| {
            for client in &mut deaf {
                let replies = || (0..20).for_each(|_| assert_eq!(read(client, 16 + (1 << 20))[4..8], [0; 4]));
                scope.spawn(replies);
            }
            for host in &mut hosts {
                let pages = || (0..20).for_each(|_| assert_eq!(read(host, 24 + (1 << 20) + 24)[0], 7, "data comes"));
                scope.spawn(pages);
            }
        });
        until("nothing is held", || served.in_flight_bytes() == 0);
    });
}

#[test]
fn writes_that_are_announced_hold_no_more_than_there_is_and_all_come_in_the_end() {
    serve(LITTLE, Tempo::Off, |served| {
        let mut slow: Vec<_> = (0..4).map(|_| nbd(served.nbd)).collect();
        let half = vec![3; 1 << 20];
        for client in &mut slow {
            client.write_all(&request(1, 1, 0, 2 << 20)).expect("the server listens");
            client.write_all(&half).expect("the server listens, or its socket");
        }
        let mut other = nbd(served.nbd);
        other.write_all(&request(0, 7, 0, 4096)).expect("the server listens");
        read(&mut other, 16 + 4096);
        assert!(served.in_flight_bytes() <= 16 << 20);
        std::thread::scope(|scope| {
            for client in &mut slow {
                scope.spawn(|| {
                    client.write_all(&half).expect("the server listens");
                    assert_eq!(read(client, 16)[4..8], [0; 4]);
                });
            }
        });
        until("nothing is held", || served.in_flight_bytes() == 0);
    });
}

#[test]
fn a_server_that_nobody_uses_sleeps() {
    serve(Limits::default(), Tempo::Scaled(1.0), |served| {
        let _client = nbd(served.nbd);
        let turns = served.turns_of_a_while();
        assert!(turns < 10_000, "{turns} turns in half a second");
    });
}
