//! Every course of events that a small fleet can meet, on the rules' own code.
//!
//! Three nodes, the first of which writes. What anybody ever said can be heard by anybody at any time, any number of
//! times, or never: that is what a store can do that loses, delays and repeats, but cannot forge. Nodes crash, with
//! their disks or without; disks refuse; one of the nodes takes over, with or without another; keys are rotated, when
//! due and by hand, and revoked; two nodes begin with first keys of their own. Of each there are as many as [`Limits`]
//! says.
//!
//! A rule that is taken away has to break a property: [`tests`].

mod properties;
mod tests;
mod world;

pub(crate) use self::world::{Fleet, Limits, World};
