//! An operator on kube-rs: a Controller of Foos and a watcher of ConfigMaps. For each Foo it applies a ConfigMap and writes the status.
//! It knows nothing of a mesh. ../README.md describes its output. The library has no leader election, so the program always writes.
use std::{collections::BTreeSet, env, fmt::Debug, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use k8s_openapi::{api::core::v1::ConfigMap, serde::de::DeserializeOwned};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        reflector::store::Writer,
        watcher::{self, Event, watcher},
    },
};
use serde_json::{Value, json};

#[derive(Debug, thiserror::Error)]
#[error("writing for {foo}: {cause}")]
struct WriteError {
    foo: String,
    cause: kube::Error,
}

/// What the controller needs for each Foo.
struct Context {
    client: Client,
    kind: ApiResource,
    pod_name: String,
    lock_name: String,
}

fn say(line: Value) {
    println!("{line}");
}

fn key<K: Resource>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// The events of a resource, each of which is printed.
fn events<K>(api: Api<K>, resource: &'static str, config: watcher::Config) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut listed = BTreeSet::new();
    let mut told = move |event: &Event<K>| match event {
        Event::Init => listed.clear(),
        Event::InitApply(object) => drop(listed.insert(key(object))),
        Event::InitDone => say(json!({"resource": resource, "listed": listed})),
        Event::Apply(object) => say(json!({"resource": resource, "type": "MODIFIED", "key": key(object)})),
        Event::Delete(object) => say(json!({"resource": resource, "type": "DELETED", "key": key(object)})),
    };
    watcher(api, config).inspect(move |result| match result {
        Ok(event) => told(event),
        Err(error) => eprintln!("{resource}: {error}"),
    })
}

/// Applies the ConfigMap of a Foo, and writes its status if another pod wrote it.
async fn reconcile(foo: Arc<DynamicObject>, context: Arc<Context>) -> Result<Action, WriteError> {
    let Context { client, kind, pod_name, lock_name } = &*context;
    let failed = |cause| WriteError { foo: key(&*foo), cause };
    let namespace = foo.namespace().unwrap_or_default();
    apply_config_map(client, &namespace, &format!("{}-by-{lock_name}", foo.name_any()), pod_name).await.map_err(failed)?;
    if foo.data["status"]["reconciledBy"] != json!(pod_name) {
        let foos: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, kind);
        let status = json!({"status": {"reconciledBy": pod_name}});
        foos.patch_status(&foo.name_any(), &PatchParams::default(), &Patch::Merge(status)).await.map_err(failed)?;
    }
    Ok(Action::await_change())
}

async fn apply_config_map(client: &Client, namespace: &str, name: &str, pod_name: &str) -> kube::Result<ConfigMap> {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"by": pod_name}});
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    config_maps.patch(name, &PatchParams::apply("kube-rs").force(), &Patch::Apply(&body)).await
}

/// Writes once into $ALSO_WRITE_TO, and prints the answer.
async fn write_elsewhere(client: &Client, lock_name: &str, pod_name: &str) {
    let Ok(namespace) = env::var("ALSO_WRITE_TO") else { return };
    match apply_config_map(client, &namespace, &format!("elsewhere-by-{lock_name}"), pod_name).await {
        Ok(_) => say(json!({"wroteTo": namespace, "code": 200})),
        Err(kube::Error::Api(status)) => say(json!({"wroteTo": namespace, "code": status.code, "message": status.message})),
        Err(error) => eprintln!("writing to {namespace}: {error}"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (pod_name, lock_name) = (env::var("POD_NAME")?, env::var("LOCK_NAME")?);
    let client = Client::try_default().await?;
    write_elsewhere(&client, &lock_name, &pod_name).await;
    let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("demo.ctrlmesh.io", "v1", "Foo"), "foos");
    let writer = Writer::new(kind.clone());
    let reader = writer.as_reader();
    let foos = events(Api::all_with(client.clone(), &kind), "foos", watcher::Config::default());
    // The other way to begin: initial events instead of a list.
    let config_maps = events(Api::<ConfigMap>::all(client.clone()), "configmaps", watcher::Config::default().streaming_lists());
    let context = Arc::new(Context { client, kind: kind.clone(), pod_name, lock_name });
    let controller = Controller::for_stream_with(foos.reflect(writer).applied_objects(), reader, kind)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(500)), context)
        .for_each(async |result| {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        });
    // The controller has a back-off of its own.
    futures::join!(controller, config_maps.default_backoff().for_each(async |_| ()));
    Ok(())
}
