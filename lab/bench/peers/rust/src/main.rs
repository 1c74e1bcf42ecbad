//! kube-rs: `reflector` over `watcher`, as its documentation shows it, and one index by label beside its store, which has
//! none. Follows the protocol of `bench/peers/peer.py`; its argument says whether objects are `dynamic` or `typed`.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::io::BufRead;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::{self, ObjectRef, Store, store::Writer};
use kube::runtime::watcher::{self, Event};
use kube::runtime::WatchStreamExt;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;

const SENT: &str = "bench.deltaloop.dev/sent";
const PROBE_APPLICATION: &str = "app-0007";

type Failure = Box<dyn std::error::Error + Send + Sync>;
/// Keys of objects by application, as client-go's indexer keeps them.
type Index = HashMap<String, HashSet<(String, String)>>;

fn monotonic_nanoseconds() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn cpu_seconds() -> f64 {
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut used) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(used.ru_utime) + seconds(used.ru_stime)
}

fn say(at: &str, mut facts: Value) {
    facts["at"] = json!(at);
    facts["cpu"] = json!(cpu_seconds());
    facts["wall"] = json!(monotonic_nanoseconds() as f64 / 1e9);
    println!("{facts}");
}

/// Counts the handler's calls, and how late they are while that is measured.
#[derive(Default)]
struct Counter {
    left: u64,
    paced: bool,
    latencies: Vec<i64>,
}

impl Counter {
    fn percentiles(&mut self) -> Value {
        self.latencies.sort_unstable();
        let at = |share: f64| {
            let index = (share * self.latencies.len() as f64) as usize;
            self.latencies[index.min(self.latencies.len() - 1)] as f64 / 1e3
        };
        if self.latencies.is_empty() { json!({}) } else { json!({"p50": at(0.5), "p99": at(0.99)}) }
    }
}

#[derive(Default)]
struct Shared {
    counter: Mutex<Counter>,
    index: Mutex<Index>,
    reached: Notify,
}

fn put(index: &Mutex<Index>, object: &impl ResourceExt) {
    let application = object.labels().get("app").cloned().unwrap_or_default();
    let key = (object.namespace().unwrap_or_default(), object.name_any());
    index.lock().unwrap().entry(application).or_default().insert(key);
}

fn count(shared: &Shared, object: &impl ResourceExt) {
    let mut counter = shared.counter.lock().unwrap();
    if counter.paced {
        let sent = object.annotations()[SENT].trim_start_matches('0').parse::<i64>().unwrap();
        counter.latencies.push(monotonic_nanoseconds() - sent);
    }
    if counter.left > 0 {
        counter.left -= 1;
        if counter.left == 0 {
            shared.reached.notify_one();
        }
    }
}

async fn follow<K>(api: Api<K>, writer: Writer<K>, shared: Arc<Shared>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash,
{
    let mut config = watcher::Config::default();
    if std::env::var("BENCH_STREAMED").is_ok_and(|value| !value.is_empty()) {
        config = config.streaming_lists();
    }
    let stream = watcher::watcher(api, config).default_backoff();
    let mut stream = pin!(reflector::reflector(writer, stream));
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::InitApply(object)) => put(&shared.index, &object),
            Ok(Event::Apply(object)) => {
                put(&shared.index, &object);
                count(&shared, &object);
            }
            Ok(_) => {}
            Err(error) => eprintln!("kube-rs: {error}"),
        }
    }
}

fn probe<K>(key: &str, store: &Store<K>, kind: &K::DynamicType, shared: &Shared) -> Value
where
    K: Resource + Clone + 'static,
    K::DynamicType: Clone + Eq + Hash,
{
    let find = |namespace: &str, name: &str| {
        store.get(&ObjectRef::new_with(name, kind.clone()).within(namespace))
    };
    let (namespace, name) = key.split_once('/').unwrap();
    let index = shared.index.lock().unwrap();
    let indexed = index
        .get(PROBE_APPLICATION)
        .map_or(0, |keys| keys.iter().filter(|(namespace, name)| find(namespace, name).is_some()).count());
    let version = find(namespace, name).and_then(|object| object.resource_version());
    json!({"probe_version": version, "indexed": indexed})
}

async fn converse<K>(api: Api<K>, kind: K::DynamicType) -> Result<(), Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash + Send + Sync,
{
    let writer = Writer::<K>::new(kind.clone());
    let store = writer.as_reader();
    let shared = Arc::new(Shared::default());
    let mut beginning = Some((api, writer));
    say("ready", json!({}));
    loop {
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map(|_| line)
        })
        .await??;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first().copied() {
            Some("list") => {
                let (api, writer) = beginning.take().ok_or("asked to list twice")?;
                tokio::spawn(follow(api, writer, shared.clone()));
                store.wait_until_ready().await?;
                say("synced", json!({"objects": store.len()}));
            }
            Some("settle") => {
                unsafe { libc::malloc_trim(0) };
                say("settled", json!({}));
            }
            Some(what @ ("events" | "pace")) => {
                *shared.counter.lock().unwrap() =
                    Counter { left: words[1].parse()?, paced: what == "pace", latencies: Vec::new() };
                say("listening", json!({}));
                shared.reached.notified().await;
                let mut facts = probe(words[2], &store, &kind, &shared);
                facts["latencies"] = shared.counter.lock().unwrap().percentiles();
                say("done", facts);
            }
            _ => std::process::exit(0),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let client = Client::try_default().await?;
    let pods = std::env::var("BENCH_KIND")? == "pods";
    match std::env::args().nth(1).as_deref() {
        Some("typed") if pods => converse(Api::<Pod>::all(client), ()).await,
        Some("dynamic") => {
            let kind = if pods {
                ApiResource::erase::<Pod>(&())
            } else {
                ApiResource {
                    group: "bench.deltaloop.dev".into(),
                    version: "v1".into(),
                    api_version: "bench.deltaloop.dev/v1".into(),
                    kind: "Widget".into(),
                    plural: "widgets".into(),
                }
            };
            converse(Api::<DynamicObject>::all_with(client, &kind), kind).await
        }
        _ => Err("usage: kube-rs-peer dynamic|typed (typed: pods only)".into()),
    }
}
