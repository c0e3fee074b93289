/** Metrics of READs over RDMA, of the server and of clients. */
import { forSides } from './definition-makers.ts';
import { STATUSES } from './label-values.ts';

const server = forSides('server');
const client = forSides('client');
const both = forSides('server', 'client');

export const RDMA_METRICS = {
  rdmaInfo: both.gauge(
    'qanat_rdma_info',
    'info',
    'Always 1; the RDMA device in use and the GID of its port as labels.',
    {
      labels: { device: 'text', gid: 'text' },
    },
  ),
  rdmaRegisteredBytes: both.gauge(
    'qanat_rdma_registered_bytes',
    'bytes',
    'Memory that is registered with RDMA devices, and locked: regions of a server, the memory of a client.',
  ),
  rdmaQueuePairs: server.gauge(
    'qanat_rdma_queue_pairs',
    'count',
    'Queue pairs over RDMA that are connected to clients.',
  ),
  rdmaSetups: server.counter(
    'qanat_rdma_setups_total',
    'count',
    'Clients that asked for a queue pair over RDMA: accepted, or refused, so that they read over TCP.',
    { labels: { outcome: ['accepted', 'refused'] } },
  ),
  rdmaReadsOut: client.gauge('qanat_rdma_reads_in_flight', 'count', 'READs that RDMA devices have to complete.'),
  rdmaCompletions: client.counter(
    'qanat_rdma_completions_total',
    'count',
    'READs that RDMA devices completed, by status; one of qanat_fetch_completions_total is several of them.',
    { labels: { status: STATUSES } },
  ),
};
