/**
 * What manual pages say that the tables of commands and options do not: descriptions, what each argument is, what is
 * worth seeing besides. In `texts`, backquotes stand around what is typed as it is.
 */
import type { CommandName } from '../command-table.ts';

/** What completion offers for an argument. */
export type OperandKind = 'location' | 'file' | 'folder' | 'command' | readonly string[];

export interface OperandManual {
  readonly meaning: string;
  readonly kind: OperandKind;
}

export interface CommandManual {
  readonly description: readonly string[];
  /** In the order of the command's operands. */
  readonly operands: readonly OperandManual[];
  readonly seeAlso: readonly CommandName[];
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const LOCATION: OperandManual = {
  meaning:
    '`rdma://host:port/path` (port 7400 when none is given), `s3://bucket/key`, `https://host/file`, `file:///path` or a ' +
    'local path; ' +
    '`lake.qanat!/path` leads into a packed file. The path is a file, a folder (every Parquet file below, by its name) or a glob: `*`, `?`, ' +
    '`**`, `[a-z]`, `{a,b}`. Quote globs, or the shell expands them. In URLs `%xx` stands for a character that means just itself',
  kind: 'location',
};

const ONE_FILE: OperandManual = { ...LOCATION, meaning: `${LOCATION.meaning}. It must mean one file` };

export const MANUAL: Readonly<Record<CommandName, CommandManual>> = {
  serve: {
    description: [
      'Serves the files below folders as one region of bytes, which clients read by range: `qanat ls`, `inspect`, ' +
        '`scan` and `cp` of a location `rdma://host:port/…`. One folder is served by the paths below it; of several, ' +
        "each is served below the folder's own name.",
      'When it is ready it prints one line of JSON on standard output, with the address as `rdma`; the log goes to ' +
        'standard error. It serves files as they were when it published them, which it does when it starts, at SIGHUP and, ' +
        'with `--watch`, when they change. Clients are told: they go on with files that are the same, and see the others ' +
        'fail as stale. A file that is rewritten and not published yet fails with an error, and is never read as a ' +
        'mixture of both. Write new versions under another name and rename them.',
      'SIGTERM and Ctrl-C let it finish what was asked for, for as long as `--drain-timeout`, and end it with 0.',
      'An address that other machines reach takes `--tokens` or `--tls-client-ca`, for S3 `--s3-keys`, or ' +
        '`--insecure-listen`, with which everybody there can read every file. `--tls-cert` encrypts; clients then write ' +
        '`rdmas://` and `https://`. At SIGHUP certificates, tokens and keys are read again too.',
    ],
    operands: [
      {
        meaning:
          'Folders whose files are served, also those in folders below; packed files (`qanat pack`), whose files are ' +
          'served under the paths that they were packed with; single files',
        kind: 'file',
      },
    ],
    seeAlso: ['pack', 'ls', 'scan', 'demo'],
  },
  pack: {
    description: [
      'Writes the files below folders as one file, laid out as `qanat serve` serves them: the size of a directory, the ' +
        'directory, the files on borders of `--align`. `qanat serve` serves it, and any location can lead into it: ' +
        '`lake.qanat!/path`, `file:///data/lake.qanat!/path`, and `lake.qanat` alone for all of it. In a shell the `!` ' +
        'needs single quotes.',
      'The name ends in `.qanat`, and appears when the file is complete and safely on disk. What is interrupted leaves ' +
        'nothing; what a crash leaves is removed by the next run for the same file.',
      'A file that changes while it is packed is an error that names it.',
    ],
    operands: [{ meaning: 'Folders, files and packed files, as `qanat serve` takes them', kind: 'file' }],
    seeAlso: ['serve', 'ls', 'scan'],
  },
  ls: {
    description: [
      'Lists the files that a location means, with their sizes: the Parquet files of a folder, and how many others there ' +
        'are; with a glob such as `**`, all that it matches. The names can be given to other commands as they are shown.',
    ],
    operands: [LOCATION],
    seeAlso: ['inspect', 'scan', 'cp'],
  },
  'verbs-check': {
    description: [
      'Says whether reads of a server go over RDMA, and if not, what is missing and what to do: the library (rdma-core), ' +
        'devices and their ports, how much memory may be locked, the server, a queue pair to it. Then it reads the same ' +
        'ranges over RDMA and over TCP, compares them, and times small and large reads of both.',
      'Devices may be those of network adapters or Soft-RoCE on any network interface (`rdma link add rxe0 type rxe netdev eth0`).',
    ],
    operands: [{ meaning: 'The server: `host:port`, or any location `rdma://host:port/…`', kind: 'location' }],
    seeAlso: ['serve', 'scan'],
  },
  inspect: {
    description: [
      "Reads a Parquet file's footer, and nothing else of it, and shows what it says: schema, row groups, and of each " +
        'column chunk its type, encodings, codec, sizes and statistics.',
      "With `--json`, all of it with the field names of ClickHouse's ParquetMetadata format.",
    ],
    operands: [ONE_FILE],
    seeAlso: ['scan', 'ls'],
  },
  scan: {
    description: [
      'Reads rows of Parquet files. Only the chunks of the columns asked for are fetched; neighbours are fetched in one ' +
        'request, row groups ahead of the one being read, and decoding starts while bytes arrive. All of it stays ' +
        'within `--memory`.',
      'What is written is chosen by `--format`, or by the ending of `--output`: `.arrow`, `.arrows`, `.ipc`, `.csv`, ' +
        '`.ndjson`, `.jsonl`, `.json`, `.txt`. Without either it is a table of the first rows on a terminal and CSV in ' +
        'a pipe. A file is complete or not there at all.',
      '`--format count` reads footers only. `--format checksum` gives a SHA-256 of the values of each column in a text ' +
        'form that the README defines, so that two readers can be compared.',
      'A file that can not be read ends the scan with an error that names it; rows written to standard output before ' +
        'that are right.',
    ],
    operands: [LOCATION],
    seeAlso: ['inspect', 'ls', 'serve'],
  },
  mount: {
    description: [
      'Shows the files of a location in a folder, by their paths within it, for any program to read: DuckDB, ClickHouse, ' +
        'pandas, cp. Bytes are fetched when they are read, and ahead of that as a reader of Parquet needs them: the rest ' +
        'of the column chunk, and the same columns of the next row groups. What is fetched is shared by all readers, and ' +
        'stays within `--memory`. Nothing can be written.',
      'With `--view decoded` each Parquet file has the same rows under the same name, with its columns of fixed width ' +
        'already decoded; they are decoded when they are read. Others, and files that are no Parquet, are as they are.',
      'When the mount answers it prints one line of JSON on standard output (a sentence on a terminal); the log goes to ' +
        'standard error. With `--daemon` that is when the command ends with 0, and the mount stays, in a process of its own.',
      'When the source publishes a new generation, what is opened from then on is new. Open files that are the same go on; ' +
        'reads of those that have changed fail with ESTALE. A source that does not answer is an error, EIO or ETIMEDOUT, ' +
        'after `--stall-timeout` and what retries take, and works again when the source does.',
      '`qanat unmount`, `umount`, SIGTERM and Ctrl-C end it with 0. Who has files open may finish for `--drain-timeout`; ' +
        'after that they get errors, and the folder is free. What a killed process leaves behind is cleared away by the ' +
        'next mount on the folder, or by `qanat unmount`.',
      'It needs Linux and /dev/fuse; users other than root need fusermount3 (package fuse3).',
    ],
    operands: [
      {
        meaning: LOCATION.meaning.replace('(every Parquet file below, by its name)', 'everything below'),
        kind: 'location',
      },
      { meaning: 'An empty folder', kind: 'folder' },
    ],
    seeAlso: ['unmount', 'serve', 'ls'],
  },
  unmount: {
    description: [
      'Takes a mount of `qanat mount` away; its process then ends by itself. While files of it are open it waits, for as long ' +
        'as `--drain-timeout`; then it leaves the mount as it is, says who uses it, and ends with 1. With `--lazy` it ' +
        'does not wait. A mount whose process was killed is taken away in any case.',
    ],
    operands: [{ meaning: 'The folder', kind: 'folder' }],
    seeAlso: ['mount'],
  },
  daemon: {
    description: [
      'Stays in the background of a machine and scans for whoever asks over HTTP: sources have names, memory and decoder ' +
        'threads are shared by all scans and bounded, connections to servers stay open.',
      'Settings come from `--config`, a YAML file, from variables and from options, each winning over the one before. ' +
        '`qanat config check` shows what holds and where it comes from. SIGHUP reads the file again, changes what can be ' +
        'changed, and says what needs a restart.',
      'SIGTERM and Ctrl-C let it finish the scans that run, for as long as `--drain-timeout`, and end it with 0.',
    ],
    operands: [],
    seeAlso: ['config', 'scan', 'serve'],
  },
  config: {
    description: [
      '`qanat config check` reads a configuration as `qanat daemon` would, with the variables and options that are given, ' +
        'and prints every setting with the place it comes from, or every mistake with its path in the file and what was ' +
        'expected there. It connects to nothing.',
    ],
    operands: [
      { meaning: 'What to do: `check`', kind: ['check'] },
      { meaning: 'The file; without it, that of `--config`, or none', kind: 'file' },
    ],
    seeAlso: ['daemon'],
  },
  cp: {
    description: [
      'Copies a file as it is, whatever it holds. The copy appears under its name when it is complete; what is ' +
        'interrupted leaves nothing.',
    ],
    operands: [
      ONE_FILE,
      { meaning: 'File or folder of this machine that it is copied to; `-` is standard output', kind: 'file' },
    ],
    seeAlso: ['ls', 'scan'],
  },
  demo: {
    description: [
      'Shows the whole path on this machine, and checks it: makes a table with DuckDB, serves it in a process of its own, ' +
        'scans it back through `rdma://`, and compares every value of every column with what DuckDB reads. It ends with ' +
        '1 when one differs. What it makes goes to a folder of its own in `TMPDIR`, and is removed.',
    ],
    operands: [],
    seeAlso: ['serve', 'scan'],
  },
  completion: {
    description: [
      "Prints a script that lets a shell complete commands, options, their values and file names. It is made from this version's " +
        'own tables and asks nothing while one types.',
      'bash: `source <(qanat completion bash)` in `~/.bashrc`, or the script as ' +
        '`~/.local/share/bash-completion/completions/qanat`.',
      'zsh: `source <(qanat completion zsh)` in `~/.zshrc` after `compinit`, or the script as `_qanat` in a folder of ' +
        '`$fpath`.',
      'fish: the script as `~/.config/fish/completions/qanat.fish`.',
    ],
    operands: [{ meaning: 'The shell: `bash`, `zsh` or `fish`', kind: SHELLS }],
    seeAlso: ['help'],
  },
  help: {
    description: [
      'Shows the manual of a command, as `--help` after it does, or of `qanat` itself. With `--man` the same as a page in ' +
        'roff, for `man -l -` or a `man1` folder.',
    ],
    operands: [{ meaning: 'A command', kind: 'command' }],
    seeAlso: ['completion'],
  },
};
