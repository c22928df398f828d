//! The files in `packaging`, as far as they can be checked without a cluster: against the schemas of Kubernetes and
//! Compose, and against what a server takes. Nobody applies them here.

mod schema;

use std::collections::BTreeSet;
use std::env::VarError;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use authentick_daemon::Config;
use authentick_daemon::config::{DEFAULT_PATH, Reference};
use authentick_lab::process::Process;
use authentick_lab::skip::skip;
use serde_json::Value;

use self::schema::{Schema, documents};
use crate::lab::{Lab, is_root, program};

/// The number of the image's user.
const USER: u64 = 10001;
/// The address of a node.
const HOST_IP: &str = "192.0.2.7";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn kubernetes() -> Schema {
    Schema::new(include_str!("kubernetes-1.31.json"))
}

fn compose() -> Schema {
    Schema::new(include_str!("compose-spec.json"))
}

/// All objects, of all files.
fn objects() -> Vec<Value> {
    let files = fs::read_dir(folder().join("kubernetes")).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().flat_map(|file| documents(&fs::read_to_string(file).unwrap())).collect()
}

/// The object of this kind and name.
fn object(kind: &str, name: &str) -> Value {
    let mut all = objects().into_iter();
    all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// What the pods of the workload with this name are, which may be a pod itself.
fn pod(kind: &str, name: &str) -> Value {
    let spec = object(kind, name)["spec"].clone();
    if kind == "Pod" { spec } else { spec["template"]["spec"].clone() }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn texts(value: &Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|one| text(one).to_owned()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn parsed(text: &str) -> Config {
    Config::parse(Path::new("authentick.toml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The configurations of a workload, for the pods or nodes with these names: what a server reads from the mounted text
/// with its container's environment.
fn configurations(kind: &str, name: &str, nodes: &[&str]) -> Vec<Config> {
    let pod = pod(kind, name);
    let container = &pod["containers"][0];
    let (volume, _) = volume_of(container, Path::new(DEFAULT_PATH));
    let mounted = list(&pod["volumes"]).iter().find(|mounted| mounted["name"] == *volume).unwrap();
    let data = object("ConfigMap", text(&mounted["configMap"]["name"]))["data"].clone();
    let file = text(&data[Path::new(DEFAULT_PATH).file_name().unwrap().to_str().unwrap()]);
    let variable = |node: &str, name: &str| {
        let variable = list(&container["env"]).iter().find(|variable| variable["name"] == name);
        let field = text(&variable.ok_or(VarError::NotPresent)?["valueFrom"]["fieldRef"]["fieldPath"]);
        // What Kubernetes says of a pod, for which the names stand here.
        Ok(match field {
            "metadata.name" | "spec.nodeName" => node.to_owned(),
            "status.hostIP" => HOST_IP.to_owned(),
            other => panic!("{other}"),
        })
    };
    let parsed = |node: &&str| Config::parse_in(Path::new(DEFAULT_PATH), file, &|name| variable(node, name));
    nodes.iter().map(parsed).collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}\n{file}"))
}

/// The volume that a container has where `path` is: its name, and where it is mounted.
fn volume_of<'a>(container: &'a Value, path: &Path) -> (&'a str, &'a Path) {
    let mounts = list(&container["volumeMounts"]).iter();
    let mut mounts = mounts.map(|mount| (text(&mount["name"]), Path::new(text(&mount["mountPath"]))));
    mounts.find(|(_, mount)| path.starts_with(mount)).unwrap_or_else(|| panic!("no volume for {path:?}"))
}

/// The container has the secrets that the configuration names, readable for the server's group alone; and what holds of
/// every container.
fn check_container(config: &Config, pod: &Value) {
    let container = &pod["containers"][0];
    for file in secrets_of(config) {
        let (secret, mount) = volume_of(container, &file);
        assert_eq!(file.parent(), Some(mount));
        let secret = list(&pod["volumes"]).iter().find(|volume| volume["name"] == *secret).unwrap();
        assert_eq!(secret["secret"]["defaultMode"], 0o440, "{file:?}");
    }
    assert_eq!(pod["securityContext"]["fsGroup"], USER);
    assert!(pod["initContainers"].is_null() && list(&pod["containers"]).len() == 1, "nothing else is run");
    let security = &container["securityContext"];
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(texts(&security["capabilities"]["drop"]), ["ALL".to_owned()].into());
    assert!(container["resources"]["requests"]["memory"].is_string());
}

/// The number of a container's port: itself, or that of this name.
fn port_of(container: &Value, port: &Value) -> u64 {
    let named = || list(&container["ports"]).iter().find(|named| named["name"] == *port).unwrap();
    port.as_u64().unwrap_or_else(|| named()["containerPort"].as_u64().unwrap())
}

#[test]
fn manifests_for_kubernetes_fit_its_schema() {
    let (schema, objects) = (kubernetes(), objects());
    assert!(objects.len() >= 15, "{}", objects.len());
    for object in &objects {
        let name = &object["metadata"]["name"];
        assert_eq!(schema.problems_of_object(object), [""; 0], "{} {name}", object["kind"]);
        let is_there = object["kind"] == "Namespace" || object["metadata"]["namespace"] == "authentick";
        assert!(is_there, "{} {name}", object["kind"]);
    }
    // A field that does not exist, one that is missing, and one of another type are found wherever they are.
    for (file, from, to) in [
        ("ke.yaml", "readinessProbe:", "readynessProbe:"),
        ("ke.yaml", "fsGroupChangePolicy:", "fsGroupChangesPolicy:"),
        ("ke.yaml", "serviceName:", "serviceNames:"),
        ("ke.yaml", "secretName:", "name:"),
        ("ntp.yaml", "hostNetwork: true", "hostNetwork: \"yes\""),
        ("ntp.yaml", "containerPort: 123", "containerPort: ntp"),
        ("ntp.yaml", "defaultMode: 288", "defaultMode: r--r-----"),
        ("ntp.yaml", "kind: DaemonSet", "kind: DeamonSet"),
        ("pod.yaml", "kind: Pod\n", "kind: Pot\n"),
        ("pod.yaml", "hostPort: 123", "hostport: 123"),
        ("pod.yaml", "fieldPath:", "field:"),
        ("pod.yaml", "claimName:", "claim:"),
        ("memcached.yaml", "podSelector:", "selector:"),
        ("memcached.yaml", "image: memcached:1.6-bookworm", "picture: memcached"),
    ] {
        let (good, bad) =
            (read(&format!("kubernetes/{file}")), read(&format!("kubernetes/{file}")).replace(from, to));
        assert_ne!(good, bad, "{from}");
        assert!(
            documents(&bad).iter().any(|object| !schema.problems_of_object(object).is_empty()),
            "{file}: {to}"
        );
    }
}

#[test]
fn compose_file_fits_the_specification_and_its_configurations_are_understood() {
    let (schema, text) = (compose(), read("compose/compose.yaml"));
    let all = documents(&text);
    assert_eq!(schema.problems(&all[0]), [""; 0]);
    for (from, to) in [
        ("read_only:", "readonly:"),
        ("mem_limit: 128m", "mem_limit: [128]"),
        ("ipv4_address:", "ip:"),
        ("services:", "service:"),
        ("cap_drop: [ALL]", "cap_drop: ALL"),
    ] {
        assert!(!schema.problems(&documents(&text.replace(from, to))[0]).is_empty(), "{to}");
    }
    let services = &all[0]["services"];
    let [ke, ntp] = ["ke", "ntp"].map(|name| parsed(&read(&format!("compose/{name}.toml"))));
    let address = services["memcached"]["networks"]["fleet"]["ipv4_address"].clone();
    let [of_ke, of_ntp] = [&ke, &ntp].map(|config| config.fleet.clone().unwrap());
    assert_eq!(of_ke.servers[0].to_string(), format!("{}:11211", address.as_str().unwrap()));
    assert_eq!(services["memcached"]["ports"][0], format!("{}:11211", of_ntp.servers[0]));
    assert_eq!(services["ntp"]["network_mode"], "host");
    assert!(of_ke.is_writer && !of_ntp.is_writer && of_ke.id == of_ntp.id && of_ke.members == of_ntp.members);
    assert!(ke.listen.is_empty() && ntp.nts.as_ref().unwrap().exchange.is_none());
    let secrets = all[0]["secrets"].as_object().unwrap();
    for (name, config) in [("ke", &ke), ("ntp", &ntp)] {
        let service = &services[name];
        assert_eq!(service["volumes"][0], format!("./{name}.toml:/etc/authentick/authentick.toml:ro"));
        assert_eq!(service["volumes"][1], format!("{name}-state:/var/lib/authentick"));
        assert_eq!(config.state_directory, Path::new("/var/lib/authentick/state"));
        let given = texts(&service["secrets"]);
        assert!(given.iter().all(|secret| secrets.contains_key(secret)));
        let needed: Vec<PathBuf> = secrets_of(config);
        assert_eq!(needed.len(), given.len(), "{name} has what it needs and nothing else");
        for file in needed {
            assert!(given.contains(file.strip_prefix("/run/secrets").unwrap().to_str().unwrap()), "{file:?}");
        }
    }
}

/// The files that a configuration names.
fn secrets_of(config: &Config) -> Vec<PathBuf> {
    let exchange = config.nts.as_ref().and_then(|nts| nts.exchange.clone());
    let of_exchange = exchange
        .into_iter()
        .flat_map(|exchange| exchange.certificates)
        .flat_map(|pair| [pair.certificate_chain, pair.private_key]);
    of_exchange.chain(config.fleet.clone().map(|fleet| fleet.seal_keys)).collect()
}

#[test]
fn nodes_of_the_manifests_make_one_fleet_with_one_writer() {
    let set = object("StatefulSet", "authentick-ke");
    let pods: Vec<String> =
        (0..set["spec"]["replicas"].as_u64().unwrap()).map(|pod| format!("authentick-ke-{pod}")).collect();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    let ke = configurations("StatefulSet", "authentick-ke", &pods);
    let ntp = configurations("DaemonSet", "authentick-ntp", &["node-1", "node-2"]);
    let nodes: Vec<_> = ke.iter().chain(&ntp).map(|config| config.fleet.clone().unwrap()).collect();
    let names: BTreeSet<String> = nodes.iter().map(|node| node.node.to_string()).collect();
    let service = object("Service", "memcached");
    let [name, namespace] = ["name", "namespace"].map(|key| text(&service["metadata"][key]));
    let memcached = format!("{name}.{namespace}.svc:{}", service["spec"]["ports"][0]["port"]);
    for node in &nodes {
        assert_eq!(node.id, nodes[0].id);
        assert_eq!(node.members.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), names);
        let servers: Vec<String> = node.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, std::slice::from_ref(&memcached));
    }
    let writers: Vec<&str> =
        nodes.iter().filter(|node| node.is_writer).map(|node| node.node.as_str()).collect();
    assert_eq!(writers, ["authentick-ke-0"]);
    for config in &ke {
        let advertised = &config.nts.as_ref().unwrap().exchange.as_ref().unwrap().advertised;
        let sent: BTreeSet<&str> =
            advertised.iter().filter_map(|entry| Some(entry.member.as_ref()?.as_str())).collect();
        assert_eq!(sent, ["node-1", "node-2"].into(), "clients are sent to all that serve time");
        assert!(config.listen.is_empty());
    }
    assert!(ntp.iter().all(|config| config.nts.as_ref().unwrap().exchange.is_none()));
    let memcached = object("NetworkPolicy", "memcached")["spec"]["ingress"][0].clone();
    assert_eq!(memcached["ports"][0]["port"], 11211);
    let from = &memcached["from"][0]["podSelector"]["matchLabels"];
    assert_eq!(*from, set["spec"]["template"]["metadata"]["labels"]);
}

#[test]
fn pods_have_what_their_servers_need_and_accept() {
    for (kind, name, node) in
        [("StatefulSet", "authentick-ke", "authentick-ke-0"), ("DaemonSet", "authentick-ntp", "node-1")]
    {
        let (config, pod) = (configurations(kind, name, &[node]).remove(0), pod(kind, name));
        let container = &pod["containers"][0];
        check_container(&config, &pod);
        // The root of a volume belongs to the cluster.
        let (state, mount) = volume_of(container, &config.state_directory);
        assert_eq!(config.state_directory.parent(), Some(mount), "{state}");
        let is_claimed = object(kind, name)["spec"]["volumeClaimTemplates"].is_array();
        if is_claimed {
            assert_eq!(pod["securityContext"]["fsGroupChangePolicy"], "OnRootMismatch");
        }
        let health = config.health.unwrap();
        let probe = &container["livenessProbe"]["httpGet"];
        assert_eq!(probe["path"], "/healthz");
        assert_eq!(port_of(container, &probe["port"]), u64::from(health.port()), "{name}");
        assert_eq!(config.metrics.unwrap().listen.ip(), health.ip());
        assert_eq!(
            probe["host"] == "127.0.0.1",
            health.ip().is_loopback(),
            "a node's own address, or the pod's"
        );
        assert_eq!(pod["hostNetwork"] == true, health.ip().is_loopback());
        let budget = object("PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"].clone();
        let set = object(kind, name);
        assert_eq!(budget, set["spec"]["template"]["metadata"]["labels"]);
        assert_eq!(set["spec"]["selector"]["matchLabels"], budget);
    }
    let ke = configurations("StatefulSet", "authentick-ke", &["authentick-ke-1"]).remove(0);
    let service = object("Service", "authentick-ke");
    let exchange = ke.nts.unwrap().exchange.unwrap();
    assert_eq!(service["spec"]["ports"][0]["port"], exchange.listen[0].port());
}

#[test]
fn single_server_needs_neither_root_nor_capabilities_and_is_reached_on_the_usual_ports() {
    let (config, pod) =
        (configurations("Pod", "authentick", &["authentick"]).remove(0), pod("Pod", "authentick"));
    let container = &pod["containers"][0];
    check_container(&config, &pod);
    assert!(container["securityContext"]["capabilities"]["add"].is_null());
    let security = &pod["securityContext"];
    assert_eq!((&security["runAsUser"], &security["runAsGroup"]), (&USER.into(), &USER.into()));
    assert_eq!((&security["runAsNonRoot"], &pod["hostNetwork"]), (&true.into(), &Value::Null));
    // The root of the volume is opened to the group, and the server keeps to a folder in it.
    let (state, mount) = volume_of(container, &config.state_directory);
    assert_eq!(config.state_directory, mount);
    assert_eq!(security["fsGroupChangePolicy"], "OnRootMismatch");
    let claim = list(&pod["volumes"]).iter().find(|volume| volume["name"] == *state).unwrap();
    object("PersistentVolumeClaim", text(&claim["persistentVolumeClaim"]["claimName"]));

    let exchange = config.nts.as_ref().unwrap().exchange.as_ref().unwrap();
    let ports = [("ntp", &config.listen[0], 123), ("ntske", &exchange.listen[0], 4460)];
    for (name, listen, usual) in ports {
        assert!(listen.port() > 1023 && listen.ip().is_unspecified(), "{listen}");
        let port = list(&container["ports"]).iter().find(|port| port["name"] == name).unwrap();
        assert_eq!((&port["containerPort"], &port["hostPort"]), (&listen.port().into(), &usual.into()));
        assert_eq!(port["protocol"] == "UDP", name == "ntp");
    }
    assert_eq!(exchange.advertised[0].port, Some(123), "clients are told where they reach it");
    assert_eq!(config.reference, Reference::Upstream(format!("{HOST_IP}:11123").parse().unwrap()));
    let health = config.health.unwrap();
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        let get = &container[probe]["httpGet"];
        assert_eq!(get["path"], path);
        assert_eq!(port_of(container, &get["port"]), u64::from(health.port()));
    }
    assert!(health.ip().is_unspecified(), "probes come from the node");
}

#[test]
fn metrics_of_pods_are_for_the_monitor_alone() {
    for (kind, name) in [("StatefulSet", "authentick-ke"), ("Pod", "authentick")] {
        let spec = object("NetworkPolicy", name)["spec"].clone();
        let workload = object(kind, name);
        let labelled = if kind == "Pod" { &workload } else { &workload["spec"]["template"] };
        assert_eq!(spec["podSelector"]["matchLabels"], labelled["metadata"]["labels"]);
        let pod = pod(kind, name);
        let ports = list(&pod["containers"][0]["ports"]);
        let (open, bounded): (Vec<&Value>, Vec<&Value>) =
            list(&spec["ingress"]).iter().partition(|rule| rule["from"].is_null());
        let names = |rules: &[&Value]| -> BTreeSet<String> {
            rules
                .iter()
                .flat_map(|rule| list(&rule["ports"]))
                .map(|port| text(&port["port"]).to_owned())
                .collect()
        };
        let all: BTreeSet<String> = ports.iter().map(|port| text(&port["name"]).to_owned()).collect();
        assert_eq!(names(&bounded), ["metrics".to_owned()].into(), "{name}");
        assert_eq!(&names(&open) | &names(&bounded), all, "{name}: a port without a rule is closed");
        assert!(names(&open).contains("health"), "probes come from the node");
    }
}

#[test]
fn image_has_the_user_the_ports_and_the_labels_that_are_relied_on() {
    let image = read("Containerfile");
    for part in [
        format!("useradd --uid {USER} --gid {USER} "),
        format!("\nUSER {USER}:{USER}\n"),
        format!("\nARG VERSION={}\n", env!("CARGO_PKG_VERSION")),
        format!("image.licenses=\"{}\"", env!("CARGO_PKG_LICENSE")),
        format!("image.description=\"{}\"", env!("CARGO_PKG_DESCRIPTION")),
        "image.title=\"authentick\"".to_owned(),
        "image.source=\"$SOURCE\"".to_owned(),
        "image.version=\"$VERSION\"".to_owned(),
        "\nSTOPSIGNAL SIGTERM\n".to_owned(),
        "\nENTRYPOINT [\"/usr/local/bin/authentick\"]\nCMD [\"serve\"]\n".to_owned(),
    ] {
        assert!(image.contains(&part), "{part:?} is not in the Containerfile");
    }
    let exposed: BTreeSet<&str> =
        image.lines().find_map(|line| line.strip_prefix("EXPOSE ")).unwrap().split(' ').collect();
    assert_eq!(exposed, ["123/udp", "4460/tcp", "10123/udp", "14460/tcp"].into());
    assert_eq!(parsed("").user, "authentick");
}

/// A server that is started as root with these capabilities alone, and cannot get others.
fn start(capabilities: &BTreeSet<String>, config: &Path) -> Process {
    let bounding: String = capabilities.iter().map(|name| format!(",+{}", name.to_lowercase())).collect();
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set",
        &format!("-all{bounding}"),
        "--inh-caps",
        "-all",
        "--no-new-privs",
        "--",
    ]);
    Process::start(command.arg(program().path()).args(["serve", "--config"]).arg(config))
}

#[test]
fn capabilities_of_the_daemon_set_are_enough_and_none_is_too_many() {
    if !is_root("to start as root with some of its capabilities") {
        return;
    }
    let pod = pod("DaemonSet", "authentick-ntp");
    let all = texts(&pod["containers"][0]["securityContext"]["capabilities"]["add"]);
    let unprivileged = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    // Ports without privileges need no capability, so its absence shows nothing.
    let is_privileged = unprivileged.trim().parse::<u32>().unwrap() > 1022;
    for without in std::iter::once(None).chain(all.iter().map(Some)) {
        let lab = Lab::new();
        let server = "listen = [\"127.0.0.1:1022\"]\nuser = \"nobody\"";
        let config = lab.config(server, "ke-listen = []");
        fs::set_permissions(lab.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let some = all.iter().filter(|name| Some(*name) != without).cloned().collect();
        let mut process = start(&some, &config);
        match without {
            None => {
                process.wait_for_line("serving time on ");
                let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
                for line in ["Uid:\t65534\t65534", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"] {
                    assert!(status.contains(line), "{line}\n{status}");
                }
                assert!(lab.state().join("cookie-keys").exists());
                // The directory is the user's from now on, and root has no rights in it.
                process.signal("-TERM");
                assert_eq!(process.wait(), 0);
                start(&some, &config).wait_for_line("serving time on ");
            }
            Some(name) if name == "NET_BIND_SERVICE" && !is_privileged => {}
            Some(name) => {
                process.wait();
                assert!(process.log().contains("authentick: "), "without {name}: {}", process.log());
            }
        }
    }
}

/// The units are well formed, and as safe as systemd can tell.
#[test]
fn units_are_hardened_and_well_formed() {
    for unit in ["authentick.service", "authentick-certificates.service"] {
        let unit = folder().join("systemd").join(unit);
        let mut command = Command::new("systemd-analyze");
        match command.args(["security", "--offline=true", "--threshold=20"]).arg(&unit).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
            Err(error) => return skip(&format!("systemd-analyze: {error}; install systemd")),
        }
        let mut command = Command::new("systemd-analyze");
        let output = command.args(["verify", "--man=no"]).arg(&unit).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // The program is not installed here; nothing else is wrong.
        let rest: Vec<&str> = said.lines().filter(|line| !line.contains("/usr/bin/authentick")).collect();
        assert!(rest.is_empty(), "{rest:?}");
    }
}
