//! A reader and a writer that walk a slice; all integers are big-endian.

use crate::{Malformed, NoRoom, Reason};

/// Reads octets from front to back; failures name the offset from the start of the slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `octets`.
    #[inline(always)]
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Reader { octets, at: 0 }
    }

    /// Octets read so far.
    #[inline(always)]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Octets not yet read.
    #[inline(always)]
    #[must_use]
    pub const fn left(&self) -> usize {
        self.octets.len() - self.at
    }

    /// The next `count` octets; [`Reason::Truncated`] if fewer are left.
    #[inline(always)]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let octets = self
            .octets
            .get(self.at..)
            .and_then(|rest| rest.get(..count))
            .ok_or(Malformed::new(Reason::Truncated, self.at))?;
        self.at += count;
        Ok(octets)
    }

    /// The next `N` octets; [`Reason::Truncated`] if fewer are left.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Malformed> {
        let at = self.at;
        self.take(N)?.first_chunk().ok_or(Malformed::new(Reason::Truncated, at))
    }

    /// The next two octets as an integer.
    #[inline(always)]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(|octets| u16::from_be_bytes(*octets))
    }

    /// The next four octets as an integer.
    #[inline(always)]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(|octets| u32::from_be_bytes(*octets))
    }
}

/// Writes octets from front to back.
#[derive(Debug)]
pub struct Writer<'a> {
    octets: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the start of `octets`.
    #[inline(always)]
    #[must_use]
    pub const fn new(octets: &'a mut [u8]) -> Self {
        Writer { octets, at: 0 }
    }

    /// Octets written so far.
    #[inline(always)]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// The next `count` octets, to be filled by the caller. They hold whatever the buffer held before.
    #[inline(always)]
    pub fn reserve(&mut self, count: usize) -> Result<&mut [u8], NoRoom> {
        let room = self.octets.get_mut(self.at..).and_then(|rest| rest.get_mut(..count)).ok_or(NoRoom)?;
        self.at += count;
        Ok(room)
    }

    /// Copies `octets`.
    #[inline(always)]
    pub fn put(&mut self, octets: &[u8]) -> Result<(), NoRoom> {
        self.reserve(octets.len())?.copy_from_slice(octets);
        Ok(())
    }

    /// Writes a two-octet integer.
    #[inline(always)]
    pub fn u16(&mut self, value: u16) -> Result<(), NoRoom> {
        self.put(&value.to_be_bytes())
    }

    /// Writes a four-octet integer.
    #[inline(always)]
    pub fn u32(&mut self, value: u32) -> Result<(), NoRoom> {
        self.put(&value.to_be_bytes())
    }

    /// Writes `count` zero octets.
    #[inline(always)]
    pub fn zeros(&mut self, count: usize) -> Result<(), NoRoom> {
        self.reserve(count)?.fill(0);
        Ok(())
    }
}
