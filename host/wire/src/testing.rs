//! A server for tests, without plugins or files: models whose versions execute requests on threads.

use crate::context::FrontendContext;
use std::sync::Arc;
use trtserver_base::clock::now_ns;
use trtserver_base::state::{ServerPhase, ServerState};
use trtserver_base::stats::{BatchExecution, VersionStats};
use trtserver_base::timer::DeadlineTimer;
use trtserver_config::ServerSettings;
use trtserver_config::log::LogControl;
use trtserver_load_report::LoadReporter;
use trtserver_models::testing::served_by;
use trtserver_models::{Model, ModelTable, ModelVersion, OpenInstances, OpenResources};
use trtserver_proto::v2::ModelConfig;
use trtserver_request::{InferRequest, ModelSignature};
use trtserver_scheduler::{RequestBatch, RequestQueue, SchedulingPolicy};

/// A server with these models that is READY. The threads of its models live as long as the test
/// process.
pub fn context(
    mut settings: ServerSettings,
    models: impl IntoIterator<Item = Arc<Model>>,
) -> Arc<FrontendContext> {
    // Whatever the machine has.
    settings.cpu_only = true;
    let table = ModelTable::default();
    table.replace_all(models.into_iter().map(|model| (model.name.to_string(), model)).collect());
    let state = ServerState::new();
    state.set_phase(ServerPhase::Ready);
    let log = LogControl::new(&settings.log);
    let (models, state) = (Arc::new(table), Arc::new(state));
    let (of_models, of_state) = (Arc::clone(&models), Arc::clone(&state));
    let reporter = LoadReporter::new(of_models, of_state, settings.queue_wait_target, None);
    Arc::new(FrontendContext {
        settings: Arc::new(settings),
        models,
        state,
        load_reporter: Arc::new(reporter),
        endpoints: Default::default(),
        shared_memory: Default::default(),
        control: Default::default(),
        log,
        status: Default::default(),
        tracer: trtserver_request_trace::Tracer::off(),
        stream_numbers: Default::default(),
        cors: None,
        access: None,
        caller: None,
        client: None,
    })
}

/// A model with these versions. Each has one thread, which passes its requests to `execute` one at
/// a time.
pub fn model(
    config: ModelConfig,
    signature: ModelSignature,
    versions: &[i64],
    execute: impl Fn(&InferRequest) + Clone + Send + 'static,
) -> Arc<Model> {
    let (config, signature) = (Arc::new(config), Arc::new(signature));
    let version = |n: &i64| (*n, ModelVersion::new(*n, Arc::new(VersionStats::new(1))));
    let versions = versions.iter().map(version).collect();
    let model = Model::new(&config.name, Some(Arc::clone(&config)), None, versions);
    for version in model.versions.values() {
        let queue = RequestQueue::new(
            SchedulingPolicy::Dynamic(Default::default()),
            &signature,
            1,
            false,
            DeadlineTimer::leak(),
        );
        let instances = OpenInstances::new(&queue, &signature, OpenResources::default());
        let queued = Arc::clone(&queue);
        let open = served_by(queued, &config, &signature, version, Some(instances));
        model.set_ready(version, open);
        let execute = execute.clone();
        std::thread::spawn(move || run(&queue, execute));
    }
    model
}

fn run(queue: &RequestQueue, execute: impl Fn(&InferRequest)) {
    let mut batch = RequestBatch::default();
    while queue.take(0, &mut batch) {
        for request in batch.requests.drain(..) {
            let rows = request.context().batch;
            let execution = BatchExecution::new(0, 1, rows, now_ns(), &Default::default());
            request.responder.executed_in(Arc::new(execution));
            execute(&request);
        }
    }
}
