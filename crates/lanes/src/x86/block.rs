//! The vector types of each path behind one trait: a register of one, two or four AES blocks.
//!
//! Every operation does the same to each block of the register, as if the blocks were alone; lane `i` of a register is
//! its `i`-th block. All that this module knows of the processor is which instruction an operation is.
//!
//! The types are named in `entry` alone, inside functions that enable the instructions which the types stand for. That
//! is what makes each operation sound, and, since all is inlined there, as fast as if it had been written there.

use std::arch::x86_64::*;

/// Octets of an AES block.
pub(super) const BLOCK_SIZE: usize = 16;

/// The octets of a block.
pub(super) type Block = [u8; BLOCK_SIZE];

/// A register of blocks.
pub(super) trait Blocks: Copy {
    /// How many blocks a register has.
    const WIDTH: usize;

    /// Zeros.
    fn zero() -> Self;

    /// The same block in every lane.
    fn broadcast(block: Block) -> Self;

    /// The 16 octets at the place of each lane of register `register`.
    ///
    /// # Safety
    /// These octets are readable.
    unsafe fn gather(place: impl Fn(usize) -> *const u8, register: usize) -> Self;

    /// Writes each lane to its place. Where two lanes have one place, the later stays.
    ///
    /// # Safety
    /// These octets are writable, and nothing else refers to them.
    unsafe fn scatter(self, place: impl Fn(usize) -> *mut u8, register: usize);

    /// Register `register` of blocks that stand side by side in memory.
    fn load<const L: usize>(blocks: &[Block; L], register: usize) -> Self;

    /// The opposite of `load`.
    fn store<const L: usize>(self, blocks: &mut [Block; L], register: usize);

    /// Exclusive or.
    fn xor(self, other: Self) -> Self;

    /// And.
    fn and(self, other: Self) -> Self;

    /// The 32-bit words added, little-endian, without carry between them.
    fn add_words(self, other: Self) -> Self;

    /// Octet `i` becomes octet `order[i]`, or zero where the top bit of `order[i]` is set.
    fn reorder(self, order: Self) -> Self;

    /// The 64-bit halves exchanged.
    fn swap_halves(self) -> Self;

    /// A round of AES.
    fn round(self, key: Self) -> Self;

    /// The last round of AES, which mixes no columns.
    fn last_round(self, key: Self) -> Self;

    /// Words a0 b0 a1 b1.
    fn low_words(self, other: Self) -> Self;

    /// Words a2 b2 a3 b3.
    fn high_words(self, other: Self) -> Self;

    /// Halves a0 b0.
    fn low_halves(self, other: Self) -> Self;

    /// Halves a1 b1.
    fn high_halves(self, other: Self) -> Self;

    /// The carryless product of a half of each: of `self` the high one if bit 0 of `HALVES` is set, of `other` if bit 4
    /// is.
    fn multiply<const HALVES: i32>(self, other: Self) -> Self;

    /// Shifted up by one bit as a little-endian number of 128 bits, the bit that falls out replaced by its remainder
    /// 0x87: multiplication by x in the field of CMAC.
    fn double(self) -> Self;
}

macro_rules! blocks {
    (
        $(#[$text:meta])* $name:ident, $register:ty, $width:literal, zero $zero:ident,
        broadcast |$block:ident| $broadcast:expr, gather |$at:ident| $gather:expr, lanes |$value:ident| $lanes:expr,
        load $load:ident, store $store:ident, xor $xor:ident, and $and:ident, add $add:ident, shl $shl:ident,
        sar $sar:ident, octets $octets:ident, words $words:ident, aes $round:ident $last:ident,
        low $low32:ident $low64:ident, high $high32:ident $high64:ident, multiply $multiply:ident
    ) => {
        $(#[$text])*
        #[derive(Clone, Copy)]
        pub(super) struct $name(pub(super) $register);

        impl Blocks for $name {
            const WIDTH: usize = $width;

            #[inline(always)]
            fn zero() -> Self {
                // SAFETY: `entry` names this type only where the instruction is enabled.
                $name(unsafe { $zero() })
            }

            #[inline(always)]
            fn broadcast($block: Block) -> Self {
                $name($broadcast)
            }

            #[inline(always)]
            unsafe fn gather(place: impl Fn(usize) -> *const u8, register: usize) -> Self {
                let $at = |lane: usize| place(register * $width + lane).cast::<__m128i>();
                $name($gather)
            }

            #[inline(always)]
            unsafe fn scatter(self, place: impl Fn(usize) -> *mut u8, register: usize) {
                let $value = self.0;
                let lanes: [__m128i; $width] = $lanes;
                for (lane, value) in lanes.into_iter().enumerate() {
                    // SAFETY: the caller says that these 16 octets may be written; no alignment is needed.
                    unsafe { _mm_storeu_si128(place(register * $width + lane).cast(), value) };
                }
            }

            #[inline(always)]
            fn load<const L: usize>(blocks: &[Block; L], register: usize) -> Self {
                let from = &raw const blocks[register * $width..][..$width][0];
                // SAFETY: the slice above has as many octets as are read; no alignment is needed.
                $name(unsafe { $load(from.cast()) })
            }

            #[inline(always)]
            fn store<const L: usize>(self, blocks: &mut [Block; L], register: usize) {
                let to = &raw mut blocks[register * $width..][..$width][0];
                // SAFETY: the slice above has as many octets as are written; no alignment is needed.
                unsafe { $store(to.cast(), self.0) };
            }

            blocks!(pair $name: xor $xor, and $and, add_words $add, reorder $octets, round $round, last_round $last,
                low_words $low32, high_words $high32, low_halves $low64, high_halves $high64);

            #[inline(always)]
            fn swap_halves(self) -> Self {
                // SAFETY: a value of this type exists only where the instruction is enabled.
                $name(unsafe { $words::<0x4e>(self.0) })
            }

            #[inline(always)]
            fn multiply<const HALVES: i32>(self, other: Self) -> Self {
                // SAFETY: a value of this type exists only where the instruction is enabled.
                $name(unsafe { $multiply::<HALVES>(self.0, other.0) })
            }

            #[inline(always)]
            fn double(self) -> Self {
                // SAFETY: a value of this type exists only where the instruction is enabled.
                let doubled = $name(unsafe { $shl::<1>(self.0) });
                // SAFETY: as above.
                let signs = unsafe { $sar::<31>(self.0) };
                // SAFETY: as above. The sign of each word goes to the next; that of the last to the first.
                let carries = $name(unsafe { $words::<0x93>(signs) });
                doubled.xor(carries.and(Self::broadcast(CARRIES)))
            }
        }
    };
    (pair $name:ident: $($method:ident $instruction:ident),*) => {
        $(
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: a value of this type exists only where the instruction is enabled.
                $name(unsafe { $instruction(self.0, other.0) })
            }
        )*
    };
}

/// What a carry into each word adds: one, and in the lowest word the remainder of x^128.
const CARRIES: Block = [0x87, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0];

blocks! {
    /// One block, with AES-NI and SSE.
    Single, __m128i, 1, zero _mm_setzero_si128,
    broadcast |block| single(&block),
    // SAFETY: the caller of `gather` says that the octets are readable; no alignment is needed.
    gather |at| unsafe { _mm_loadu_si128(at(0)) },
    lanes |value| [value],
    load _mm_loadu_si128, store _mm_storeu_si128, xor _mm_xor_si128, and _mm_and_si128, add _mm_add_epi32,
    shl _mm_slli_epi32, sar _mm_srai_epi32, octets _mm_shuffle_epi8, words _mm_shuffle_epi32,
    aes _mm_aesenc_si128 _mm_aesenclast_si128, low _mm_unpacklo_epi32 _mm_unpacklo_epi64,
    high _mm_unpackhi_epi32 _mm_unpackhi_epi64, multiply _mm_clmulepi64_si128
}

blocks! {
    /// Two blocks, with VAES and AVX2.
    Double, __m256i, 2, zero _mm256_setzero_si256,
    // SAFETY: a value of this type exists only where AVX2 is enabled.
    broadcast |block| unsafe { _mm256_broadcastsi128_si256(single(&block)) },
    gather |at| pair(at(0), at(1)),
    lanes |value| halves(value),
    load _mm256_loadu_si256, store _mm256_storeu_si256, xor _mm256_xor_si256, and _mm256_and_si256,
    add _mm256_add_epi32, shl _mm256_slli_epi32, sar _mm256_srai_epi32, octets _mm256_shuffle_epi8,
    words _mm256_shuffle_epi32, aes _mm256_aesenc_epi128 _mm256_aesenclast_epi128,
    low _mm256_unpacklo_epi32 _mm256_unpacklo_epi64, high _mm256_unpackhi_epi32 _mm256_unpackhi_epi64,
    multiply _mm256_clmulepi64_epi128
}

blocks! {
    /// Four blocks, with VAES and AVX-512.
    Quadruple, __m512i, 4, zero _mm512_setzero_si512,
    // SAFETY: a value of this type exists only where AVX-512 is enabled.
    broadcast |block| unsafe { _mm512_broadcast_i32x4(single(&block)) },
    gather |at| quartet(pair(at(0), at(1)), pair(at(2), at(3))),
    lanes |value| quarters(value),
    load _mm512_loadu_si512, store _mm512_storeu_si512, xor _mm512_xor_si512, and _mm512_and_si512,
    add _mm512_add_epi32, shl _mm512_slli_epi32, sar _mm512_srai_epi32, octets _mm512_shuffle_epi8,
    words _mm512_shuffle_epi32, aes _mm512_aesenc_epi128 _mm512_aesenclast_epi128,
    low _mm512_unpacklo_epi32 _mm512_unpacklo_epi64, high _mm512_unpackhi_epi32 _mm512_unpackhi_epi64,
    multiply _mm512_clmulepi64_epi128
}

#[inline(always)]
fn single(block: &Block) -> __m128i {
    // SAFETY: a block has the 16 octets that are read; no alignment is needed.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

/// Two blocks of memory in one register. Only for `gather`, whose caller answers for the places.
#[inline(always)]
fn pair(low: *const __m128i, high: *const __m128i) -> __m256i {
    // SAFETY: the caller of `gather` says that the octets are readable; no alignment is needed.
    let low = unsafe { _mm_loadu_si128(low) };
    // SAFETY: as above.
    let high = unsafe { _mm_loadu_si128(high) };
    // SAFETY: this runs only where AVX2 is enabled.
    let low = unsafe { _mm256_castsi128_si256(low) };
    // SAFETY: as above.
    unsafe { _mm256_inserti128_si256::<1>(low, high) }
}

#[inline(always)]
fn quartet(low: __m256i, high: __m256i) -> __m512i {
    // SAFETY: this runs only where AVX-512 is enabled.
    let low = unsafe { _mm512_castsi256_si512(low) };
    // SAFETY: as above.
    unsafe { _mm512_inserti64x4::<1>(low, high) }
}

#[inline(always)]
fn halves(value: __m256i) -> [__m128i; 2] {
    // SAFETY: this runs only where AVX2 is enabled.
    let low = unsafe { _mm256_castsi256_si128(value) };
    // SAFETY: as above.
    [low, unsafe { _mm256_extracti128_si256::<1>(value) }]
}

#[inline(always)]
fn quarters(value: __m512i) -> [__m128i; 4] {
    // SAFETY: this runs only where AVX-512 is enabled.
    let low = unsafe { _mm512_castsi512_si256(value) };
    // SAFETY: as above.
    let high = unsafe { _mm512_extracti64x4_epi64::<1>(value) };
    let ([a, b], [c, d]) = (halves(low), halves(high));
    [a, b, c, d]
}
