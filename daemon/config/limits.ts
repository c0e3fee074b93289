/** The bounds of config/, each with its unit and its reason. */

/** Bytes of a configuration file: a thousand sources take a tenth of it. */
export const CONFIG_BYTES_MAX = 1 << 20;

/** Aliases that a YAML file may expand to: more is no configuration but an attack. */
export const YAML_ALIASES_MAX = 1000;

/** Named sources: each may hold connections open. */
export const SOURCES_MAX = 1000;

/** Characters of a source's name: it stands in URLs, log lines and labels. */
export const SOURCE_NAME_CHARACTERS_MAX = 64;

/** Characters of a value that a problem quotes. */
export const FOUND_CHARACTERS_SHOWN = 60;

/** Mistakes of a file or a request that are looked at one by one: nobody corrects more at a time. */
export const PROBLEMS_MAX = 100;

/** Problems of a file that are told: who has more starts at the top. */
export const PROBLEMS_SHOWN_MAX = 20;
