//! What Debian's own programs say of the package: piuparts installs and purges it in a system of its own; lintian
//! reads it, and its errors fail the proof, while its warnings are shown. Both run in a copy of the image, with this
//! machine's network: piuparts fetches what the package needs.

use std::path::Path;
use std::process::Stdio;

use super::Report;
use super::image::{self, Image};
use super::limited::{self, MINUTE, Running};
use super::package::Package;

/// How the script ends if one of them objects.
const OBJECTION: i32 = 3;

/// Arguments: the image, an empty folder, the image that packages are installed in, the package, the mirror.
const JUDGE: &str = r#"
image=$1 folder=$2 base=$3 package=$4 mirror=$5 rpm=$6 rpmlint=$7
mount -t tmpfs -o mode=755,size=75% judge "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay -o "lowerdir=$image,upperdir=$folder/upper,workdir=$folder/work" judge "$folder/root"
root=$folder/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir "$root/srv/base"
mount --bind --read-only "$base" "$root/srv/base"
cp "$package" "$root/srv/$(basename "$package")"
cp /etc/resolv.conf "$root/etc/resolv.conf"
deb=/srv/$(basename "$package")
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
status=0
chroot "$root" lintian --allow-root --fail-on error "$deb" || status=3
chroot "$root" piuparts --distribution bookworm --mirror "$mirror main" --existing-chroot /srv/base \
    --skip-minimize --no-eatmydata --install-purge-install "$deb" > "$folder/piuparts" 2>&1 || status=3
# What it says of each step is long.
grep -E '^[0-9]+m[0-9.]+s (ERROR|WARN|INFO: (PASS|FAIL))|owned by' "$folder/piuparts" || tail "$folder/piuparts"
if [ -n "$rpm" ]; then
    cp "$rpm" "$root/srv/authentick.rpm"
    cp "$rpmlint" "$root/srv/rpmlint.toml"
    chroot "$root" rpmlint --config /srv/rpmlint.toml /srv/authentick.rpm || status=3
    # Its dependencies are packages of another family here.
    chroot "$root" sh -ec 'rpm --install --nodeps --force-debian /srv/authentick.rpm
        authentick serve --check
        test "$(stat -c %U:%a /etc/authentick/authentick.toml)" = root:644
        id authentick
        rpm --erase --nodeps --force-debian authentick
        ! test -e /usr/bin/authentick' > "$folder/rpm" 2>&1 || { status=3; cat "$folder/rpm"; }
fi
exit $status
"#;

pub(crate) fn prove(
    root: &Path,
    judging: &Image,
    base: &Image,
    package: &Package,
    report: &mut Report,
) -> Result<(), String> {
    let parent = judging.folder.parent().unwrap_or(&judging.folder);
    let io = |error| format!("{}: {error}", parent.display());
    let folder = tempfile::Builder::new().prefix("judge-").tempdir_in(parent).map_err(io)?;
    let mut command = limited::caged(JUDGE);
    command
        .arg(&judging.folder)
        .arg(folder.path())
        .arg(&base.folder)
        .arg(&package.file)
        .arg(image::mirror()?);
    let rpm = package.rpm();
    match &rpm {
        Some(rpm) => drop(command.arg(rpm).arg(root.join("packaging/rpmlint.toml"))),
        None => {
            command.args(["", ""]);
            report.say("there is no .rpm beside the .deb; `cargo xtask package` makes both");
        }
    }
    let said = Running::start(&mut command, Stdio::null(), 8 * MINUTE)?.finish()?;
    said.text().lines().for_each(|line| report.say(line));
    if said.status.code() == Some(OBJECTION) {
        return Err("lintian or rpmlint finds an error, or an installation fails: see above".to_owned());
    }
    limited::succeeded("lintian and piuparts", &said)?;
    report.count("judges", if rpm.is_some() { 4 } else { 2 }, "programs");
    Ok(())
}
