//! Both ends against each other in virtual time, and both against the published vectors.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod lifetime;
mod phases;
mod responder;
mod time;
mod vectors;
mod world;
