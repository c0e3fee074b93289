/** Options that say how sources are got at, and who gets at a server. Parts of OPTIONS. */
import { oneOf, parseDomain } from './argument.ts';
import { file, toggle } from './option-spec.ts';

export const ACCESS_OPTIONS = {
  tokenFile: {
    ...file,
    without: 'QANAT_TOKEN, which holds the token itself',
    meaning:
      'File with a bearer token for `rdma://`, `rdmas://`, `http://` and `https://`; it is not sent to servers that these ' +
      'redirect to',
  },
  caFile: {
    ...file,
    without: 'none',
    meaning:
      'Certificate authorities (PEM) to accept for `rdmas://`, `https://` and `s3://`, besides those that Node has or ' +
      'NODE_EXTRA_CA_CERTS names',
  },
  clientCert: {
    ...file,
    without: 'none',
    meaning: 'Certificate (PEM) to show to `rdmas://`, `https://` and `s3://` servers that ask for one',
  },
  clientKey: {
    ...file,
    without: 'none',
    meaning: 'Key of `--client-cert` (PEM, without a passphrase)',
  },
  endpoint: {
    argument: 'url',
    parse: (text: string): string => text,
    without: 'as configured for the AWS SDK, else Amazon',
    meaning: 'Store of `s3://` locations, `https://host:port`',
  },
  region: {
    argument: 'name',
    parse: (text: string): string => text,
    without: 'as configured for the AWS SDK, else us-east-1',
    meaning: "Region of `s3://` locations; where a bucket's own is another, it is found",
  },
  pathStyle: {
    argument: 'auto|yes|no',
    choices: ['auto', 'yes', 'no'],
    preset: 'yes',
    parse: oneOf('auto', 'yes', 'no'),
    without: 'auto: yes for any endpoint but Amazon; alone, yes',
    meaning: "Buckets of `s3://` in the path and not in the host's name",
  },
  anonymous: toggle('Do not sign requests of `s3://`, for public buckets'),
  requesterPays: toggle('Pay for requests and bytes of `s3://` buckets whose owner does not'),
};

export const GUARD_OPTIONS = {
  tlsCert: {
    ...file,
    without: 'none: connections are not encrypted',
    meaning:
      'Certificate (PEM, with those up to its authority): queue pairs, HTTP and S3 then speak TLS 1.3 and nothing else. ' +
      'Read again at SIGHUP and, with `--watch`, when it changes; what can not be used is told and not taken over',
  },
  tlsKey: { ...file, without: 'none', meaning: 'Key of `--tls-cert` (PEM, without a passphrase)' },
  tlsClientCa: {
    ...file,
    without: 'none: clients need no certificate',
    meaning: 'Certificate authorities (PEM): clients have to show a certificate of one of them, on every listener',
  },
  tokens: {
    ...file,
    without: 'none: everybody is let in',
    meaning:
      'File of the tokens that queue pairs and HTTP ask for, `name token path...` a line; instead of a token its hash, ' +
      '`sha256:…`; what a token may read are the files under its paths, `/` is everything and `@metrics` the metrics. ' +
      'Read again at SIGHUP',
  },
  hostNames: {
    argument: 'names',
    parse: (text: string): string[] => text.split(',').map((name) => parseDomain(name.trim())),
    without: 'none',
    meaning:
      'Names, besides localhost and addresses, that HTTP may be asked for by while everybody is let in at an address of ' +
      'this machine alone, separated by commas: others may be those of a page in a browser here',
  },
  insecureListen: toggle('Allow an address that other machines reach although everybody is let in there'),
};
