//! Every limit of the engine, in one place. Each is hit by a test.

use std::time::Duration;

/// Characters of a worker's name.
pub const WORKER_ID_CHARS_MAX: usize = 200;
/// Characters of a stream's name.
pub const STREAM_NAME_CHARS_MAX: usize = 200;
/// Streams in all, before no other can be opened over HTTP: each costs a row, a line in every list, and seven in the metrics.
pub const STREAMS_MAX: usize = 10_000;
/// Streams that one token may open over HTTP.
pub const STREAMS_OF_TOKEN_MAX: usize = 1_000;
/// Streams that have lines of their own in the metrics; the others are summed.
pub const METRICS_STREAMS_MAX: usize = 500;
/// Workers that a process remembers for having asked it for jobs; of more, those that were silent for longest are forgotten.
pub const POLLERS_MAX: usize = 1_000;
/// An empty stream is forgotten so long after the last of its jobs has been dropped by retention.
pub const STREAM_FORGOTTEN: Duration = Duration::from_secs(3600);
/// Streams that one claim may name.
pub const CLAIM_STREAMS_MAX: usize = 32;
/// Jobs that one array claim may ask for, and reports that one array call may carry.
pub const WORKER_BATCH_MAX: usize = 1_000;
/// Jobs that one enqueue call may carry.
pub const ENQUEUE_BATCH_MAX: usize = 10_000;
/// How long a claim may wait for a job.
pub const CLAIM_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a claim waits when it does not say.
pub const CLAIM_WAIT_DEFAULT: Duration = Duration::from_secs(5);
/// How long a reader may wait for the end of a job.
pub const JOB_WAIT_MAX: Duration = Duration::from_secs(60);

/// The most requests a second that a token may be limited to; who means more means no limit.
pub const REQUESTS_PER_SECOND_MAX: u32 = 1_000_000;

/// The shortest lease that may be configured.
pub const LEASE_TTL_MIN: Duration = Duration::from_secs(1);
/// The longest lease that may be configured: a crashed holder blocks its job this long.
pub const LEASE_TTL_MAX: Duration = Duration::from_secs(600);
/// The lease when nothing is configured.
pub const LEASE_TTL_DEFAULT: Duration = Duration::from_secs(60);

/// How often a process says that it is there, at the latest.
pub const PROCESS_SAYS_EVERY: Duration = Duration::from_secs(5);
/// A process that has said nothing for so long is not alive: two of its messages in a row may be late.
pub const PROCESS_ALIVE: Duration = Duration::from_secs(15);
/// What a process has left is removed after this.
pub const PROCESS_FORGOTTEN: Duration = Duration::from_secs(3600);

/// Patches of one branch that are tried on each new tip of it: the newest that have not landed. An older one is tried when somebody
/// merges it.
pub const LANDINGS_TRIED: i64 = 100;

/// Attempts of a job when its producer does not say.
pub const MAX_ATTEMPTS_DEFAULT: u32 = 5;
/// The most attempts that a producer may ask for.
pub const MAX_ATTEMPTS_MAX: u32 = 1_000;
/// How often a job may be handed back unfinished before it counts as dead: a deploy must not eat attempts, yet a job
/// that makes every worker shut down must come to rest.
pub const RELEASES_MAX: u32 = 20;
/// The longest time-out of one attempt: a week.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// How far ahead a job may be scheduled: ten years.
pub const DELAY_MAX: Duration = Duration::from_secs(3653 * 24 * 3600);
/// Bytes of a unique key.
pub const UNIQUE_KEY_BYTES_MAX: usize = 255;

/// Bytes of one payload or result.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Bytes of payload after which a claim of many jobs takes no further one.
pub const CLAIM_BYTES_MAX: usize = 16 << 20;
/// Bytes of one error report's message or stack; what is longer is cut, never refused: a failure must be reportable.
pub const ERROR_TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of an error's code.
pub const ERROR_CODE_BYTES_MAX: usize = 200;
/// Characters of a note on progress.
pub const PROGRESS_NOTE_CHARS_MAX: usize = 200;
/// Nesting of any JSON document that comes in.
pub const JSON_DEPTH_MAX: usize = 32;
/// Bytes of one request body.
pub const BODY_BYTES_MAX: usize = 16 << 20;

/// Rows of one page when the reader does not say.
pub const PAGE_ROWS_DEFAULT: u32 = 50;
/// Rows of one page at most.
pub const PAGE_ROWS_MAX: u32 = 500;
/// Rows looked at to fill one page; a filter that matches nothing costs no more than this.
pub const PAGE_SCAN_MAX: u32 = 5_000;

/// Leases settled by one pass of the reaper before it commits.
pub const REAP_BATCH: usize = 500;
/// Scheduled jobs made ready by one transaction.
pub const PROMOTE_BATCH: usize = 1_000;
/// Jobs taken out of the inbox at once.
pub const INBOX_BATCH: usize = 1_000;
/// Finished jobs dropped by one transaction of retention.
pub const RETENTION_BATCH: usize = 1_000;
/// Streams whose figures are kept by one transaction.
pub const STATS_BATCH: usize = 200;
/// Rows of figures forgotten by one transaction.
pub const STATS_FORGET_BATCH: usize = 2_000;
/// Empty streams, or bulk acts that have ended, forgotten by one transaction.
pub const FORGET_BATCH: usize = 1_000;
/// Dead jobs redriven or purged by one transaction.
pub const DLQ_BATCH: usize = 1_000;

/// Jobs that one step of a bulk act is done to, in one transaction: on SQLite every claim waits behind it.
pub const BULK_BATCH: usize = 200;
/// Jobs that one step of a bulk act looks at.
pub const BULK_LOOKED_AT: usize = 1_000;
/// Ended jobs that are looked at to count those that a bulk act would reach.
pub const BULK_COUNTED_MAX: usize = 10_000;
/// Bulk acts under way at once.
pub const BULK_RUNNING_MAX: i64 = 20;

/// Characters of an artifact's id.
pub const ARTIFACT_ID_CHARS_MAX: usize = 64;
/// Ids of one kind that are looked at for the beginning and the end of an id that a person chose.
pub const IDS_LOOKED_AT_MAX: i64 = 10_000;
/// The same for an id that Fernery made, whose beginning is a minute: more were made in it only at 8,000 a second.
pub const MADE_IDS_LOOKED_AT_MAX: i64 = 500_000;
/// Characters of a title.
pub const TITLE_CHARS_MAX: usize = 500;
/// Bytes of acceptance criteria, a description or a note.
pub const CRITERIA_BYTES_MAX: usize = 64 << 10;
/// Bytes of an objective's metadata.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
/// Bytes of what a standing objective says of its scope.
pub const SCOPE_BYTES_MAX: usize = 4 << 10;
/// Blockers of one objective.
pub const BLOCKERS_MAX: usize = 100;
/// Bytes of the content of one output. All parts of a result together are bounded by `PAYLOAD_BYTES_MAX`.
pub const CONTENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of a blueprint file.
pub const BLUEPRINT_BYTES_MAX: usize = 256 << 10;
/// Bytes of a prompt that a blueprint words itself, before its names are filled in.
pub const PROMPT_BYTES_MAX: usize = 16 << 10;
/// Blueprints that extend each other, one after the other.
pub const BLUEPRINT_PARENTS_MAX: usize = 8;
/// Flaws of one blueprint that are told at once.
pub const BLUEPRINT_FLAWS_MAX: usize = 100;
/// The shortest interval of a worker.
pub const WORKER_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// The longest interval of a worker: what a lost wake-up costs.
pub const WORKER_INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// The shortest budget of a workorder.
pub const BUDGET_MIN: Duration = Duration::from_secs(1);
/// Wall time of one objective over all its workorders: a year.
pub const ENVELOPE_TIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// Tokens of one objective.
pub const ENVELOPE_TOKENS_MAX: u64 = 1_000_000_000_000;
/// Dollars of one objective.
pub const ENVELOPE_USD_MAX: u64 = 1_000_000;
/// Captures of one triage workorder.
pub const TRIAGE_BATCH_MAX: u32 = 1_000;
/// Tokens that a model may answer with.
pub const MODEL_TOKENS_MAX: u32 = 1_000_000;
/// Bytes of one capture.
pub const CAPTURE_BYTES_MAX: usize = 64 << 10;
/// Bytes of captures in one triage workorder, as they are shown.
pub const TRIAGE_BYTES_MAX: usize = 256 << 10;
/// Bytes of artifacts that are kept of one answer of an azolla to another.
pub const RESPONSE_KEPT_BYTES_MAX: usize = 64 << 10;
/// Characters of a capture's source label.
pub const SOURCE_LABEL_CHARS_MAX: usize = 200;
/// Captures that one call may carry.
pub const CAPTURES_MAX: usize = 1_000;
/// Words of one command.
pub const ARGV_MAX: usize = 256;
/// Bytes of one word of a command.
pub const ARGV_BYTES_MAX: usize = 64 << 10;
/// Names of the environment that one command may see.
pub const ENV_NAMES_MAX: usize = 100;
/// Files of a login that one agent may see.
pub const LOGIN_FILES_MAX: usize = 50;
/// Bytes of a prompt that is passed as an argument: the kernel takes no longer one.
pub const PROMPT_ARGUMENT_BYTES_MAX: usize = (128 << 10) - 1;
/// Bytes of one line of an agent's output; a longer one is skipped.
pub const AGENT_LINE_BYTES_MAX: usize = 10 << 20;
/// Bytes of an agent's last message; of a longer one the end is kept.
pub const AGENT_MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Characters of what an agent is shown to be doing.
pub const AGENT_NOTE_CHARS_MAX: usize = 200;
/// Bytes of an agent's output when its profile does not say.
pub const AGENT_OUTPUT_BYTES_DEFAULT: u64 = 256 << 20;
/// Bytes of an agent's output that a profile may allow.
pub const AGENT_OUTPUT_BYTES_MAX: u64 = 16 << 30;
/// Gates of one azolla.
pub const GATES_MAX: usize = 50;
/// Workorders that one process carries out at once for one executor.
pub const EXECUTOR_PARALLEL_MAX: u32 = 256;
/// Workorders under way at once in one azolla, and objectives that wait for confirmation; who means more says 0.
pub const AZOLLA_LIMIT_MAX: u32 = 10_000;
/// Azollas that one azolla names for reading.
pub const READS_MAX: usize = 100;

/// Bytes of one line of a patch.
pub const PATCH_LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes of all binary content of a patch, unpacked.
pub const PATCH_UNPACKED_BYTES_MAX: u64 = 64 << 20;
/// Files that a patch may touch when its gate does not say.
pub const PATCH_FILES_DEFAULT: u32 = 200;
/// Files that a gate may let a patch touch.
pub const PATCH_FILES_MAX: u32 = 10_000;
/// Protected files that a gate or a ticket may let a patch touch.
pub const PATCH_ALLOWED_MAX: usize = 100;
/// Patterns that a gate may protect: the default list with many scripts beside it.
pub const PROTECTS_MAX: usize = 500;
/// Protected files that a patch touches, as evidence lists them; of more the number is kept.
pub const PROTECTED_LISTED_MAX: usize = 50;

/// Bytes of one file of an exported folder: the largest output with every character escaped.
pub const IMPORT_FILE_BYTES_MAX: usize = 8 << 20;
/// Bytes of a request that brings an exported folder in. What is larger moves as a backup.
pub const IMPORT_BYTES_MAX: usize = 64 << 20;
/// Bytes after which a page of an export ends.
pub const EXPORT_PAGE_BYTES: usize = 1 << 20;
/// How far an instant of an exported folder may lie ahead: clocks differ, but what is stored must not drag ours along.
pub const IMPORT_AHEAD_MAX: Duration = Duration::from_secs(600);
/// Blueprints of one azolla in an exported folder that differ in what decides: each may have to be tried for each ticket.
pub const IMPORT_BLUEPRINTS_MAX: usize = 200;
/// Characters of who, what and to what in an entry of the journal: a token's name with its id is the longest.
pub const JOURNAL_NAME_CHARS_MAX: usize = 400;
/// Bytes of what a gate says, as evidence keeps it.
pub const EVIDENCE_BYTES_MAX: usize = 16 << 10;
/// Bytes that an executor is told of why the attempt before failed; of more the end is kept. Only the last attempt is told,
/// so a prompt does not grow from attempt to attempt.
pub const TOLD_FAILURE_BYTES_MAX: usize = 8 << 10;
/// Bytes of a patch that the next attempt is started from; it travels in the snapshot, beside the prompt.
pub const REWORK_PATCH_BYTES_MAX: usize = 512 << 10;
/// Files of an earlier attempt, or of a conflict, that an agent is told by name.
pub const REWORK_FILES_TOLD_MAX: usize = 50;
/// Bytes of the question of an executor.
pub const QUESTION_BYTES_MAX: usize = 4 << 10;
/// Comments on one run.
pub const COMMENTS_MAX: i64 = 500;
/// Bytes of one comment.
pub const COMMENT_BYTES_MAX: usize = 4 << 10;
/// Lines that a comment may be about: more is a file, and not a place in it.
pub const COMMENT_LINES_MAX: u64 = 1_000;
/// Files of one ticket that one reviewer may have marked as viewed.
pub const VIEWED_FILES_MAX: i64 = 10_000;
/// Last lines of a failed gate's log that people are shown at once.
pub const LOG_LINES_SHOWN: usize = 20;
/// Last lines of a log by which two failures are compared.
pub const ALIKE_LINES: usize = 10;
/// Workorders under way at once above which `fernery azolla check` warns: each ends at a person, who loses the overview.
pub const CONCURRENCY_ADVISED: u32 = 3;
/// Faults of an exported folder that are told at once.
pub const IMPORT_FAULTS_MAX: usize = 100;
