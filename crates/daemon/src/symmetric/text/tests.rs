//! Both programs' files as they are, and every refusal with its line.

use authentick_crypto::mac::MacAlgorithm;

use super::super::keys::Standing;
use super::*;

const HEX32: &str = "7EA62AE64D190114D46D5A082F948EC1";
const HEX40: &str = "7EA62AE64D190114D46D5A082F948EC101020304";
const HEX64: &str = "7EA62AE64D190114D46D5A082F948EC17EA62AE64D190114D46D5A082F948EC1";

fn read(text: &str) -> Keys {
    parse(text.as_bytes(), None).unwrap_or_else(|mistake| panic!("{text:?}: {mistake}"))
}

fn one(text: &str) -> Key {
    let mut keys = read(text);
    assert_eq!(keys.keys.len(), 1);
    keys.keys.remove(0)
}

fn mistake(text: &str, format: Option<Dialect>) -> Mistake {
    match parse(text.as_bytes(), format) {
        Err(mistake) => mistake,
        Ok(keys) => panic!("{text:?} is read as {keys:?}"),
    }
}

fn octets(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn file_of_chrony_is_read_as_it_is() {
    let text = format!(
        "# comment\n! comment\n ; comment\n% comment\n\n1 MD5 AVeryLongAndSecretPassword\n  2   SHA1 HEX:{HEX40}\n\
         10 tulip\n20 MD5 ASCII:crocus\n25 SHA1 HEX:1dc764e0791b11fa67efc7ecbc4b0d73f68a070c\n\
         30\tAES128\tHEX:{HEX32}\n31 AES256 HEX:{HEX64}\n32 SHA512 HEX:{HEX64}{HEX64}\n\
         4294967295 AES128 ASCII:0123456789abcdef"
    );
    let keys = read(&text);
    let found: Vec<_> = keys.keys.iter().map(|key| (key.id(), key.algorithm().name(), key.line)).collect();
    assert_eq!(
        found,
        [
            (1, "MD5", 6),
            (2, "SHA1", 7),
            (10, "MD5", 8),
            (20, "MD5", 9),
            (25, "SHA1", 10),
            (30, "AES128", 11),
            (31, "AES256", 12),
            (32, "SHA512", 13),
            (4_294_967_295, "AES128", 14),
        ]
    );
    assert_eq!(keys.find(1).unwrap().key.key().expose(), b"AVeryLongAndSecretPassword");
    assert_eq!(keys.find(2).unwrap().key.key().expose(), octets(HEX40));
    assert_eq!(keys.find(10).unwrap().key.key().expose(), b"tulip");
    assert_eq!(keys.find(20).unwrap().key.key().expose(), b"crocus");
    assert_eq!(keys.find(4_294_967_295).unwrap().key.key().expose(), b"0123456789abcdef");
    assert_eq!(keys.dialect, Some(Dialect::Chrony));
}

#[test]
fn file_of_ntpd_is_read_as_it_is() {
    let text = format!(
        "# ntpkey_MD5key_host.3902000000\n 1 MD5 2M%qzh,6ZGeWY)7G}}2Q>  # MD5 key\n\
         11 SHA1 {HEX40}  # SHA1 key\n12 M seventeenletters\n13 AES {HEX32}\n14 AES-128 {HEX32} # x y z\n\
         15 aes128cmac {HEX32} 192.0.2.1,2001:db8::/32\n16 sha-256 {HEX64} 198.51.100.0/24 # list\n\
         17 SHA1 20octetsareallofthem"
    );
    let keys = read(&text);
    assert_eq!(keys.dialect, Some(Dialect::Ntp));
    assert_eq!(keys.find(1).unwrap().key.key().expose(), b"2M%qzh,6ZGeWY)7G}2Q>");
    assert_eq!(keys.find(11).unwrap().key.key().expose(), octets(HEX40));
    assert_eq!(keys.find(12).unwrap().algorithm(), MacAlgorithm::Md5);
    for id in [13, 14, 15] {
        let key = keys.find(id).unwrap();
        assert_eq!(
            (key.algorithm(), key.key.key().expose()),
            (MacAlgorithm::Cmac128, &octets(HEX32)[..]),
            "{id}"
        );
    }
    assert_eq!(keys.find(17).unwrap().key.key().expose(), b"20octetsareallofthem");
    assert!(keys.warnings.is_empty(), "{:?}", keys.warnings);
    for (id, address, is_trusted) in [
        (14, "203.0.113.1", true),
        (15, "192.0.2.1", true),
        (15, "192.0.2.2", false),
        (15, "2001:db8::1", true),
        (16, "198.51.100.7", true),
        (16, "198.51.101.7", false),
    ] {
        assert_eq!(keys.find(id).unwrap().trusts(address.parse().unwrap()), is_trusted, "{id} {address}");
    }
}

#[test]
fn our_types_are_read_beside_both() {
    let text = format!(
        "1 HMAC-MD5 HEX:{HEX32}\n2 HMAC-SHA224 {HEX32}\n3 GMAC128 HEX:{HEX32}\n4 GMAC128 HEX:{HEX32}:01020304\n\
         5 GMAC-SIV128 HEX:{HEX32}\n6 POLY1305 HEX:{HEX64}\n7 gmac128 {HEX32}\n"
    );
    let keys = read(&text);
    let found: Vec<_> = keys.keys.iter().map(Key::algorithm).collect();
    use MacAlgorithm::{Gmac128, GmacSiv128, HmacMd5, HmacSha224, Poly1305};
    assert_eq!(found, [HmacMd5, HmacSha224, Gmac128, Gmac128, GmacSiv128, Poly1305, Gmac128]);
    let salts: Vec<_> =
        keys.keys.iter().filter_map(|key| key.key.salt().map(|salt| (key.id(), salt))).collect();
    assert_eq!(salts, [(4, [1, 2, 3, 4])]);
    assert_eq!((keys.dialect, keys.warnings.len()), (None, 0));
}

#[test]
fn long_key_without_prefix_is_read_as_the_owner_of_the_file_reads_it() {
    let line = format!("1 SHA1 {HEX40}\n");
    let as_text = HEX40.as_bytes().to_vec();
    for (before, format, expected) in [
        ("2 tulip\n", None, &as_text),
        ("; chrony\n", None, &as_text),
        ("", Some(Dialect::Chrony), &as_text),
        ("2 M tulip\n", None, &octets(HEX40)),
        ("", Some(Dialect::Ntp), &octets(HEX40)),
    ] {
        let keys = parse(format!("{before}{line}").as_bytes(), format).unwrap();
        assert_eq!(keys.find(1).unwrap().key.key().expose(), expected, "{before:?} {format:?}");
        assert!(
            !keys.warnings.iter().any(|warning| warning.problem.contains("hexadecimal")),
            "{:?}",
            keys.warnings
        );
    }
    // Nothing shows whose it is, or both do: ntpd's reading, and a warning with line and id.
    for before in ["\n", "; chrony\n2 M tulip\n"] {
        let keys = read(&format!("{before}{line}"));
        let key = keys.find(1).unwrap();
        assert_eq!(key.key.key().expose(), octets(HEX40));
        let warned = keys
            .warnings
            .iter()
            .filter(|warning| warning.problem.contains("hexadecimal"))
            .collect::<Vec<_>>();
        assert!(
            warned.len() == 1 && warned[0].to_string().contains(&format!("line {}: key 1", key.line)),
            "{warned:?}"
        );
    }
    // AES256 is chrony's name: 32 characters are its 32 octets, which NTPsec would have padded for its AES-256.
    assert_eq!(one(&format!("1 AES256 {HEX32}")).key.key().expose(), HEX32.as_bytes());
    assert!(mistake(&format!("1 AES-256 {HEX32}"), None).problem.contains("this one has 16"));
    // As text this key of chrony's would be too long for its type, so it is no text.
    assert_eq!(one(&format!("1 AES128 {HEX32}")).key.key().expose(), octets(HEX32));
    assert!(mistake(&format!("1 AES128 {HEX32}"), Some(Dialect::Chrony)).problem.contains("this one has 32"));
}

/// The names are those of chrony 4.3 (hash_nettle.c, cmac.h), and some of OpenSSL's, which ntpd takes all.
#[test]
fn key_of_a_type_that_is_not_implemented_costs_its_own_id_alone() {
    let foreign =
        ["SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512", "TIGER", "WHIRLPOOL", "AES-192", "ripemd160"];
    for name in foreign {
        let text = format!("1 SHA256 HEX:{HEX32}\n7 {name} HEX:{HEX64}\n2 AES128 HEX:{HEX32}\n");
        let keys = read(&text);
        assert_eq!(keys.keys.iter().map(Key::id).collect::<Vec<_>>(), [1, 2], "{name}");
        let found = keys.find_foreign(7).unwrap();
        assert_eq!((found.line, found.name), (2, name.to_ascii_uppercase().as_str()));
        let [warning] = &keys.warnings[..] else { panic!("{:?}", keys.warnings) };
        let warning = warning.to_string();
        assert!(warning.contains("line 2: key 7") && warning.contains(found.name), "{warning}");
        assert!(warning.contains("AES128") && !warning.contains(HEX64), "{warning}");
    }
    // The id is taken all the same, by one line.
    for line in [format!("7 AES128 HEX:{HEX32}"), "7 WHIRLPOOL tulip".to_owned()] {
        let found = mistake(&format!("7 TIGER tulip\n{line}\n"), None);
        assert!(found.line == 2 && found.problem.contains("stands on line 1 already"), "{found}");
    }
}

#[test]
fn every_refusal_names_line_key_and_remedy() {
    let [auto, chrony, ntp] = [None, Some(Dialect::Chrony), Some(Dialect::Ntp)];
    for (line, format, problem, remedy) in [
        ("7", auto, "key 7: neither type nor key", "ID TYPE KEY"),
        ("7 AES128", auto, "key 7: a type and no key", "after the type"),
        ("x MD5 tulip", auto, "first word is no key id", "1 to 4294967295"),
        ("-1 MD5 tulip", auto, "first word is no key id", "1 to 4294967295"),
        ("+1 MD5 tulip", auto, "first word is no key id", "1 to 4294967295"),
        ("0x10 MD5 tulip", auto, "first word is no key id", "1 to 4294967295"),
        ("0 MD5 tulip", auto, "0 is no key id", "1 to 4294967295"),
        ("4294967296 MD5 tulip", auto, "above 4294967295", "1 to 4294967295"),
        ("99999999999999999999 MD5 tulip", auto, "above 4294967295", "1 to 4294967295"),
        ("7 MD6 tulip", auto, "key 7: the second word is no type", "AES128"),
        ("7 TIGER", auto, "key 7: a type and no key", "after the type"),
        ("7 TIGER tu#lip", auto, "key 7: a # in the key", "HEX:"),
        ("7 TIGER tulip crocus", auto, "no list of servers", "192.0.2.1"),
        ("7 TIGER2 tulip", auto, "key 7: the second word is no type", "AES128"),
        ("7 MD5 tu#lip", auto, "key 7: a # in the key", "HEX:"),
        ("7 MD5 #tulip", auto, "key 7: a # in the key", "HEX:"),
        ("7 tulip # comment", auto, "key 7: the second word is no type", "AES128"),
        ("7 MD5 tulip#comment", auto, "key 7: a # in the key", "HEX:"),
        ("7 MD5 tulpe\u{e4}", auto, "no printable ASCII", "HEX:"),
        ("7 MD5 tu\u{b}lip", auto, "no printable ASCII", "HEX:"),
        ("7 MD5 tulip\r", auto, "carriage return", "sed"),
        ("7 MD5 HEX:0", auto, "1 hexadecimal digits", "two for each octet"),
        ("7 MD5 HEX:", auto, "0 hexadecimal digits", "two for each octet"),
        ("7 MD5 HEX:zz", auto, "no hexadecimal digit", "A to F"),
        ("7 MD5 ASCII:", auto, "nothing after ASCII:", "write the key"),
        ("7 MD5 hex:00ff", auto, "in capitals only", "in capitals"),
        ("7 MD5 Ascii:00ff", auto, "in capitals only", "in capitals"),
        ("7 M 123456789012345678901", auto, "21 hexadecimal digits", "one may be missing"),
        ("7 M tulipsandcrocusesandiris", auto, "ntpd takes a key of more than 20", "in hexadecimal"),
        ("7 MD5 tulipsandcrocusesandiris", ntp, "ntpd takes a key of more than 20", "in hexadecimal"),
        ("7 MD5 HEX:00ff", ntp, "ntpd knows neither HEX: nor ASCII:", "chrony's"),
        ("7 MD5 tulip 192.0.2.1", chrony, "chrony skips the line", "lines of their own"),
        ("7 MD5 tulip # comment", chrony, "chrony skips the line", "lines of their own"),
        ("7 MD5 tulip crocus", auto, "no list of servers", "192.0.2.1"),
        ("7 MD5 tulip 192.0.2.1/24", auto, "no list of servers", "192.0.2.1"),
        ("7 MD5 tulip 192.0.2.1, 192.0.2.2", auto, "more words", "HEX:"),
        ("7 MD5 tulip 192.0.2.1 192.0.2.2", auto, "more words", "HEX:"),
        ("7 AES128 tulip", auto, "key of AES128 has 16 octets, this one has 5", "32 digits"),
        ("7 AES128 HEX:00", auto, "key of AES128 has 16 octets, this one has 1", "32 digits"),
        ("7 AES256 0123456789abcdef", auto, "key of AES256 has 32 octets, this one has 16", "64 digits"),
        ("7 POLY1305 0123456789abcdef", auto, "key of POLY1305 has 32 octets", "64 digits"),
        ("7 GMAC128 HEX:00112233445566778899aabbccddeeff00112233", auto, "this one has 20", "32 digits"),
        ("7 GMAC128 HEX:00112233445566778899aabbccddeeff:001122", auto, "a salt has 4 octets", "8 digits"),
        ("7 GMAC128 HEX:00112233445566778899aabbccddeeff:", auto, "0 hexadecimal digits in the salt", "two"),
        ("7 AES128 HEX:00112233445566778899aabbccddeeff:00112233", auto, "AES128 takes none", "colon"),
    ] {
        let text = format!("# first\n\n{line}\n");
        let mistake = mistake(&text, format);
        assert_eq!(mistake.line, 3, "{line:?}: {mistake}");
        assert!(mistake.problem.contains(problem), "{line:?}: {mistake}");
        assert!(mistake.remedy.contains(remedy), "{line:?}: {mistake}");
    }
    let long = format!("7 MD5 HEX:{}", "00".repeat(1024));
    assert!(mistake(&long, auto).problem.contains("2058 octets, of which chrony reads 2047"));
    let cut = format!("7 M {}", "00".repeat(33));
    assert!(mistake(&cut, auto).problem.contains("33 octets, of which ntpd uses the first 32"));
}

#[test]
fn second_line_with_an_id_is_refused_with_both_lines() {
    let mistake = mistake("1 MD5 tulip\n2 MD5 crocus\n\n01 MD5 tulip\n", None);
    assert_eq!(mistake.line, 4);
    assert!(mistake.problem.contains("key 1 stands on line 1 already"), "{mistake}");
}

#[test]
fn short_keys_are_warned_of() {
    let keys = read("1 MD5 ninechars\n2 MD5 ten-chars!\n");
    assert_eq!(keys.warnings.len(), 1);
    assert!(keys.warnings[0].to_string().starts_with("line 1: key 1 has 72 bits"), "{:?}", keys.warnings);
}

#[test]
fn notes_say_how_a_key_stands() {
    let text = "# authentick: key 1 made 1970-01-01T00:00:10Z replaced-by 2 retires 1970-01-01T00:01:40Z\n\
                1 MD5 tulips-tulips\n\
                # authentick: key 3 retired 1970-01-01T00:00:05Z\n# authentick: key 9 made 1970-01-01T00:00:05Z\n\
                2 MD5 crocus-crocus\n";
    let keys = read(text);
    let states = |now| keys.keys.iter().map(|key| key.standing(now)).collect::<Vec<_>>();
    assert_eq!(states(99), [Standing::Replaced, Standing::Current]);
    assert_eq!(states(100), [Standing::Expired, Standing::Current]);
    assert_eq!(keys.accepted(99).count(), 2);
    assert_eq!(keys.accepted(100).map(Key::id).collect::<Vec<_>>(), [2]);
    assert_eq!(keys.keys[0].note.made, Some(10));
    assert_eq!(keys.retired.iter().map(|note| note.id).collect::<Vec<_>>(), [3]);
    let back = mistake(&format!("{text}3 MD5 back-again\n"), None);
    assert!(back.line == 6 && back.problem.contains("key 3 is back"), "{back}");
    let twice = mistake(&format!("{text}# authentick: key 1\n"), None);
    assert!(
        twice.line == 6 && twice.problem.contains("second note on key 1, after that on line 1"),
        "{twice}"
    );
    let broken = mistake(&format!("# authentick: key 1 lost\n{text}"), None);
    assert!(broken.line == 1 && broken.remedy.contains("mend the note"), "{broken}");
}

#[test]
fn no_message_repeats_a_word_that_may_be_secret() {
    // Words in any place: of a key with spaces, of a line without an id, of a type that was forgotten.
    for line in [
        "SECRET",
        "SECRET MD5 x",
        "1 SECRET x",
        "1 MD5 SECRET#",
        "1 MD5 SECRET SECRET",
        "1 MD5 SECRET SECRET SECRET",
        "1 MD5 HEX:SECRET",
        "1 MD5 hex:SECRET",
        "1 AES128 SECRET",
        "1 AES128 ASCII:SECRET",
        "1 MD5 SECRET\r",
        "1 MD5 SECRET\u{e4}",
        "1 M SECRETSECRETSECRETSECRET",
        "1 GMAC128 HEX:00:SECRET",
    ] {
        let mistake = mistake(line, None);
        assert!(!format!("{mistake} {mistake:?}").contains("SECRET"), "{line:?}: {mistake}");
    }
    let keys = read("1 MD5 SECRET\n2 SHA1 ASCII:SECRETSECRETSECRETSECRET");
    assert!(!format!("{keys:?}").contains("SECRET"), "{keys:?}");
}
