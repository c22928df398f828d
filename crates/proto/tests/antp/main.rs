//! Both ends of ANTP against each other in virtual time, and both against the published vectors.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod drawn;
mod lifetime;
mod phases;
mod responder;
mod time;
mod vectors;

use authentick_proto::antp::server::Settings;
use authentick_proto::antp::state_key::StateKeys;
use authentick_sim::antp::published_service;
use authentick_sim::{AntpServer, Link, Server, World};
use authentick_wire::antp::Suite;
use authentick_wire::time::{NtpSpan, NtpTime};

/// The instant at which every world begins.
const BEGIN: NtpTime = NtpTime::from_unix(1_700_000_000, 0);

fn after(nanos: i64) -> NtpTime {
    BEGIN + NtpSpan::from_nanos(nanos)
}

/// A world whose server has every suite.
fn world(seed: u64) -> World {
    world_with(seed, &Suite::ALL, Settings::default())
}

fn world_with(seed: u64, suites: &[Suite], settings: Settings) -> World {
    let server = Server::new(!seed).with_antp(published_service(suites, settings));
    World::with_server(seed, Link::default(), server)
}

/// ANTP as the server of `world` has it.
fn antp(world: &mut World) -> &mut AntpServer {
    world.server.antp.as_mut().unwrap()
}

fn rotate(world: &mut World, now: u64, keep: usize) {
    let keys: &mut StateKeys = &mut antp(world).keys;
    *keys = keys.rotate(now, keep, None);
}

fn flipped(octets: &[u8], bit: usize) -> Vec<u8> {
    let mut changed = octets.to_vec();
    changed[bit / 8] ^= 1 << (bit % 8);
    changed
}
