//! The operator on kube-rs: a `Controller` with 16 workers. Config maps are kept in a store of their own, which feeds
//! `owns_stream`, so that a reconcile reads nothing from the server and writes only what differs; kube-rs itself keeps
//! the controller's own kind alone. A write that meets a newer object is tried again at once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Spec {
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Status {
    message: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Greeting {
    metadata: ObjectMeta,
    spec: Spec,
    status: Option<Status>,
}

impl Resource for Greeting {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Greeting".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "bench.deltaloop.dev".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "greetings".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

struct Context {
    client: Client,
    children: Store<ConfigMap>,
}

async fn write_child(greeting: &Greeting, context: &Context) -> Result<(), kube::Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let api = Api::<ConfigMap>::namespaced(context.client.clone(), &namespace);
    let name = greeting.name_any();
    let data = BTreeMap::from([("message".to_owned(), greeting.spec.message.clone())]);
    let owners = greeting.controller_owner_ref(&()).map(|owner| vec![owner]);
    match context.children.get(&ObjectRef::new(&name).within(&namespace)) {
        None => {
            let metadata = ObjectMeta { name: Some(name), owner_references: owners, ..ObjectMeta::default() };
            let child = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            api.create(&PostParams::default(), &child).await?;
        }
        Some(there) if there.data.as_ref() != Some(&data) || there.metadata.owner_references != owners => {
            let mut child = (*there).clone();
            child.data = Some(data);
            child.metadata.owner_references = owners;
            api.replace(&name, &PostParams::default(), &child).await?;
        }
        Some(_) => {}
    }
    Ok(())
}

async fn reconcile(greeting: Arc<Greeting>, context: Arc<Context>) -> Result<Action, kube::Error> {
    context.children.wait_until_ready().await.ok();
    write_child(&greeting, &context).await?;
    let said = greeting.status.as_ref().and_then(|status| status.message.as_ref());
    if said != Some(&greeting.spec.message) {
        let namespace = greeting.namespace().unwrap_or_default();
        let api = Api::<Greeting>::namespaced(context.client.clone(), &namespace);
        let status = json!({"status": {"message": greeting.spec.message}});
        api.patch_status(&greeting.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(Action::await_change())
}

fn again(_: Arc<Greeting>, error: &kube::Error, _: Arc<Context>) -> Action {
    match error {
        kube::Error::Api(status) if status.code == 409 => Action::requeue(Duration::from_millis(1)),
        error => {
            eprintln!("kube-rs: {error}");
            Action::requeue(Duration::from_secs(1))
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), kube::Error> {
    let client = Client::try_default().await?;
    let (children, writer) = reflector::store();
    let config = || watcher::Config::default().streaming_lists();
    let owned = watcher(Api::<ConfigMap>::all(client.clone()), config())
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    let context = Arc::new(Context { client: client.clone(), children });
    Controller::new(Api::<Greeting>::all(client), config())
        .with_config(Config::default().concurrency(16))
        .owns_stream(owned)
        .shutdown_on_signal()
        .run(reconcile, again, context)
        .for_each(|_| futures::future::ready(()))
        .await;
    Ok(())
}
