//! Certificates and the time: what is logged about one that has expired or is not yet valid, and when it is refused.
//!
//! A server starts with such a certificate, as its own clock may be what is wrong, and others may need it to set
//! theirs. It does not replace a valid one by it. Only the server's own certificate is checked: others in the chain may
//! be there for old clients, and have expired for the rest.

use std::path::Path;

use authentick_ke::tls::{CertificateInfo, Defect, Identity};
use authentick_net::clock;

use crate::symmetric::notes;

/// At so many days before its end one is reminded of it, and at its end.
const NOTICE_DAYS: [i64; 3] = [14, 3, 0];
const DAY_SECONDS: i64 = 86_400;

/// The time by this host's clock, in Unix seconds.
fn now() -> i64 {
    i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX)
}

/// Why a certificate is not valid at this time, if it is not.
pub(crate) fn problem(certificate: &CertificateInfo) -> Option<String> {
    problem_at(certificate, now())
}

fn problem_at(certificate: &CertificateInfo, now: i64) -> Option<String> {
    let CertificateInfo { not_before, not_after, .. } = certificate;
    let subject = certificate.title();
    if *not_after < now {
        return Some(format!("the certificate of {subject} has expired, at {}", date(*not_after)));
    }
    (now < *not_before)
        .then(|| format!("the certificate of {subject} is good from {} only", date(*not_before)))
}

/// Whether a certificate is over at this time.
pub(crate) fn is_over(certificate: &CertificateInfo) -> bool {
    certificate.not_after < now()
}

/// Why a certificate must not replace the one in use: it is not valid now, and that one is.
pub(crate) fn objection(in_force: &CertificateInfo, fresh: &CertificateInfo) -> Option<String> {
    objection_at(in_force, fresh, now())
}

fn objection_at(in_force: &CertificateInfo, fresh: &CertificateInfo, now: i64) -> Option<String> {
    problem_at(fresh, now).filter(|_| problem_at(in_force, now).is_none())
}

/// Logs what clients dislike about the certificate and the chain of an identity, as each start, check and reload does.
pub(crate) fn warn_of(file: &Path, identity: &Identity) {
    warn(&identity.certificate);
    warn_of_chain(file, identity.warnings(clock::unix_seconds()));
}

/// Logs the defects of a chain in a file.
pub(crate) fn warn_of_chain(file: &Path, defects: Vec<Defect>) {
    for Defect { problem, remedy } in defects {
        log::warn!("{}: {problem}; {remedy}", file.display());
    }
}

/// Logs that a certificate is not valid, or expires soon.
pub(crate) fn warn(certificate: &CertificateInfo) {
    if let Some(words) = warning_at(certificate, now()) {
        log::warn!("{words}");
    }
}

fn warning_at(certificate: &CertificateInfo, now: i64) -> Option<String> {
    const REMEDY: &str = "renew it, or set this host's clock if that is wrong";
    if let Some(problem) = problem_at(certificate, now) {
        return Some(format!("{problem}: clients will refuse it; {REMEDY}"));
    }
    let (left, subject) = (certificate.not_after - now, certificate.title());
    let length = if left < 2 * DAY_SECONDS {
        format!("{} hours", left / 3600)
    } else {
        format!("{} days", left / DAY_SECONDS)
    };
    (notices(certificate, now) > 0)
        .then(|| format!("the certificate of {subject} ends in {length}; renew it"))
}

/// How many of the days to be reminded at have come.
fn notices(certificate: &CertificateInfo, now: i64) -> usize {
    let left = certificate.not_after - now;
    NOTICE_DAYS.iter().filter(|days| left < **days * DAY_SECONDS).count()
}

/// Reminds of the ends of certificates that stay in force.
#[derive(Debug, Default)]
pub(crate) struct Reminder {
    /// The ends of those in force, and of how many days was reminded.
    told: Vec<(i64, usize)>,
}

impl Reminder {
    /// Logs of each certificate of which there is more to say than the last time. Of one that has come since, that was
    /// said when it came.
    pub(crate) fn look<'a>(&mut self, certificates: impl IntoIterator<Item = &'a CertificateInfo>) {
        self.look_at(certificates, now()).iter().for_each(|words| log::warn!("{words}"));
    }

    fn look_at<'a>(
        &mut self,
        certificates: impl IntoIterator<Item = &'a CertificateInfo>,
        now: i64,
    ) -> Vec<String> {
        let (mut told, mut said) = (Vec::new(), Vec::new());
        for certificate in certificates {
            let (end, count) = (certificate.not_after, notices(certificate, now));
            let before = self.told.iter().find(|(known, _)| *known == end).map_or(count, |(_, count)| *count);
            if count > before {
                said.extend(warning_at(certificate, now));
            }
            told.push((end, count));
        }
        self.told = told;
        said
    }
}

/// A day and a time, for a message.
pub(crate) fn date(unix_seconds: i64) -> String {
    match u64::try_from(unix_seconds) {
        Err(_) => "a time before 1970".to_owned(),
        Ok(seconds @ ..=notes::TIME_MAX) => notes::time(seconds),
        Ok(_) => "a time far off".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(not_before: i64, not_after: i64) -> CertificateInfo {
        let (subject, issuer) = ("CN=it".to_owned(), "CN=other".to_owned());
        CertificateInfo { subject, issuer, names: Vec::new(), not_before, not_after }
    }

    #[test]
    fn certificate_is_good_from_its_first_second_to_its_last() {
        let certificate = certificate(1000, 2000);
        for (now, part) in [
            (999, Some("from 1970-01-01T00:16:40Z")),
            (1000, None),
            (2000, None),
            (2001, Some("has expired")),
        ] {
            let problem = problem_at(&certificate, now);
            assert_eq!(problem.is_some(), part.is_some(), "{now}");
            assert!(problem.unwrap_or_default().contains(part.unwrap_or_default()), "{now}");
        }
        assert_eq!(date(i64::MAX), "a time far off");
        assert_eq!(date(-1), "a time before 1970");
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn reminders_come_two_weeks_and_three_days_before_the_end_and_at_it_each_once() {
        let day = DAY_SECONDS;
        let (one, other) = (certificate(0, 100 * day), certificate(0, 300 * day));
        let mut reminder = Reminder::default();
        let mut said = Vec::new();
        for hour in 0..24 * 101 {
            for words in reminder.look_at([&one, &other], hour * 3600) {
                said.push((hour / 24, words));
            }
        }
        let said: Vec<(i64, &str)> = said.iter().map(|(day, words)| (*day, words.as_str())).collect();
        let [(86, first), (97, second), (100, last)] = said[..] else { panic!("{said:?}") };
        assert!(first.contains("ends in 13 days") && second.contains("ends in 2 days"), "{said:?}");
        assert!(last.contains("has expired") && last.contains("renew it"), "{said:?}");
        // What replaces it is told of when it is read.
        assert!(reminder.look_at([&certificate(0, 102 * day)], 101 * day).is_empty());
        assert!(warning_at(&certificate(0, 102 * day), 101 * day).unwrap().contains("in 24 hours"));
        assert_eq!(warning_at(&certificate(0, 102 * day), 80 * day), None);
    }

    #[test]
    fn good_certificate_is_not_given_up_for_a_bad_one_and_a_bad_one_is_for_any() {
        let (good, over, early) = (certificate(0, 100), certificate(0, 10), certificate(90, 100));
        for (in_force, fresh, is_kept) in [
            (&good, &good, false),
            (&good, &over, true),
            (&good, &early, true),
            (&over, &good, false),
            (&over, &early, false),
            (&early, &over, false),
        ] {
            assert_eq!(objection_at(in_force, fresh, 50).is_some(), is_kept, "{in_force:?} {fresh:?}");
        }
    }
}
