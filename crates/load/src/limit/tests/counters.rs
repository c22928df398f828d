//! What a server's host counts, where it is not of this load alone.

use super::*;

#[test]
fn counters_that_cannot_be_of_this_load_are_no_evidence() {
    let said = |traffic: Traffic| {
        let mut step = step();
        fail(&mut step, Cause::Timeout, 3000);
        step.server = Some(ServerUse { traffic: Some(traffic), ..server(0, 0, 0) });
        judge(&step)
    };
    let counted = |read, full, sent| Traffic { read, full, sent, ..Traffic::default() };
    for (traffic, why) in [
        (counted(0, 0, 0), "bypasses the host's sockets"),
        (counted(10_000, 0, 400), "bypasses the host's sockets"),
        (counted(9000, 0, 9100), "has other clients"),
        (counted(60_000, 0, 60_000), "has other clients"),
        (counted(9000, 2000, 9000), "has other clients"),
    ] {
        let found = said(traffic);
        assert_eq!(found.by, Limit::Unknown, "{found:?}");
        assert!(found.why.last().unwrap().contains(why), "{found:?}");
    }
    // What waits unread is the server's, as far as nobody has read so many.
    assert_eq!(said(Traffic { unread: 4500, ..counted(7000, 0, 7000) }).by, Limit::Server);
    assert_eq!(said(Traffic { unread: 1000, ..counted(7000, 0, 7000) }).by, Limit::Path);
    // A few datagrams of others change nothing, nor do those of a warm-up that are known to be uncertain.
    assert_eq!(said(counted(7010, 0, 7010)).by, Limit::Path);
    assert_eq!(said(Traffic { uncertain: 500, ..counted(7000, 3400, 7000) }).by, Limit::Server);
    assert_eq!(said(Traffic { uncertain: 4000, ..counted(7000, 0, 7000) }).by, Limit::Unknown);
}

#[test]
fn own_datagrams_are_told_from_the_servers() {
    let mut step = step();
    fail(&mut step, Cause::Timeout, 500);
    fail(&mut step, Cause::Late, 20);
    fail(&mut step, Cause::BadTag, 7);
    step.tally.surplus = 3;
    step.background = Some(Tally { scheduled: 50, sent: 50, answered: 50, ..Tally::default() });
    evidence(&mut step).drops.unread = 4;
    let own = datagrams(&step).unwrap();
    assert_eq!(own, Datagrams { requests: 10_050, answers: 10_050 - 500 + 3 });
    let counted = Traffic { read: 9700 + own.answers, full: 104, sent: 9600 + 10_000, ..Traffic::default() };
    let server = without_own(counted, &step, 50).unwrap();
    assert_eq!(server, Traffic { read: 9700, full: 100, sent: 9600, ..Traffic::default() });
    // Key exchanges go over TCP; what ANTP sends is not one datagram for each operation.
    step.accompanying = Some(Tally { operation: Operation::KeyExchange, sent: 9, ..Tally::default() });
    assert_eq!(datagrams(&step), Some(own));
    step.antp = Some(AntpFigures::default());
    assert_eq!((datagrams(&step), without_own(counted, &step, 50)), (None, None));
    (step.accompanying, step.background) = (None, None);
    assert_eq!(datagrams(&step).unwrap().requests, 10_000);
}
