/* What Graphmill asks of DPDK, in as few functions as will do: this file is compiled against the DPDK that is there, and loaded
 * when it is needed.
 *
 * One thread at a time calls for a device. A frame is an Ethernet header, the lane in two bytes, and a bucket. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

/* Changes when anything here does that the program relies on. */
#define ABI 1
/* An EtherType for experiments (IEEE 802). */
#define TYPE 0x88b5
#define QUEUE 1024
#define BURST 64

static struct rte_mempool *pool;

uint32_t graphmill_dpdk_abi(void) { return ABI; }

static int failed(const char *call, int error, char *what, int room) {
    snprintf(what, room, "%s: %s", call, rte_strerror(error < 0 ? -error : error));
    return -1;
}

/* Starts DPDK, once in a process. DPDK binds its caller to a processor: this gives the others back. */
int graphmill_dpdk_start(int count, char **args, char *what, int room) {
    cpu_set_t processors;
    int unknown = pthread_getaffinity_np(pthread_self(), sizeof processors, &processors);
    if (rte_eal_init(count, args) < 0) return failed("rte_eal_init", rte_errno, what, room);
    if (!unknown) pthread_setaffinity_np(pthread_self(), sizeof processors, &processors);
    /* Packets have virtual addresses, which a device that wants physical ones would take for others. */
    return rte_eal_iova_mode() == RTE_IOVA_PA ? failed("rte_eal_iova_mode: give --iova-mode=va", ENOTSUP, what, room) : 0;
}

/* Makes packets whose bytes are in `memory`, `stride` bytes each. */
int graphmill_dpdk_pool(void *memory, uint64_t bytes, uint16_t stride, char *what, int room) {
    struct rte_pktmbuf_extmem outside = {memory, (rte_iova_t)(uintptr_t)memory, bytes, stride};
    char name[32];
    static int pools;
    snprintf(name, sizeof name, "graphmill-%d", pools++);
    pool = rte_pktmbuf_pool_create_extbuf(name, bytes / stride, 0, 0, stride, SOCKET_ID_ANY, &outside, 1);
    return pool ? 0 : failed("rte_pktmbuf_pool_create_extbuf", rte_errno, what, room);
}

/* Starts a port with a queue each way. */
static int started(uint16_t port, uint8_t *address, char *what, int room) {
    int error;
    struct rte_eth_conf conf = {0};
    if ((error = rte_eth_dev_configure(port, 1, 1, &conf))) return failed("rte_eth_dev_configure", error, what, room);
    uint16_t receive = QUEUE, send = QUEUE;
    if ((error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &send))) return failed("rte_eth_dev_adjust_nb_rx_tx_desc", error, what, room);
    int socket = rte_eth_dev_socket_id(port);
    if ((error = rte_eth_rx_queue_setup(port, 0, receive, socket, NULL, pool))) return failed("rte_eth_rx_queue_setup", error, what, room);
    if ((error = rte_eth_tx_queue_setup(port, 0, send, socket, NULL))) return failed("rte_eth_tx_queue_setup", error, what, room);
    if ((error = rte_eth_dev_start(port))) return failed("rte_eth_dev_start", error, what, room);
    /* Devices without addresses take all frames. */
    rte_eth_promiscuous_enable(port);
    struct rte_ether_addr own;
    if ((error = rte_eth_macaddr_get(port, &own))) return failed("rte_eth_macaddr_get", error, what, room);
    memcpy(address, &own, 6);
    return 0;
}

/* Attaches a device, such as net_memif0,role=server, and starts it with a queue each way. */
int graphmill_dpdk_attach(const char *device, uint16_t *port, uint8_t *address, char *what, int room) {
    char name[RTE_ETH_NAME_MAX_LEN];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(device, ","), device);
    int error = rte_dev_probe(device);
    if (error) return failed("rte_dev_probe", error, what, room);
    if ((error = rte_eth_dev_get_port_by_name(name, port))) return failed("rte_eth_dev_get_port_by_name", error, what, room);
    int done = started(*port, address, what, room);
    if (done) rte_eth_dev_stop(*port), rte_eth_dev_close(*port);
    return done;
}

int graphmill_dpdk_is_up(uint16_t port) {
    struct rte_eth_link link;
    return !rte_eth_link_get_nowait(port, &link) && link.link_status;
}

/* Threads that DPDK knows have caches of packets. */
static void know_thread(void) {
    static __thread int known;
    if (!known) known = 1, (void)rte_thread_register();
}

/* Sends buckets of `bytes` bytes; returns how many the device took, from the first on. */
int graphmill_dpdk_send(uint16_t port, const uint8_t *addresses, uint16_t lane, const void *const *buckets, uint32_t bytes, int count) {
    struct rte_mbuf *frames[BURST];
    know_thread();
    if (count > BURST) count = BURST;
    if (rte_pktmbuf_alloc_bulk(pool, frames, count)) return 0;
    uint16_t words[2] = {rte_cpu_to_be_16(TYPE), lane};
    for (int i = 0; i < count; i++) {
        char *frame = rte_pktmbuf_append(frames[i], 12 + sizeof words + bytes);
        if (!frame) {
            rte_pktmbuf_free_bulk(frames, count);
            return -1;
        }
        memcpy(frame, addresses, 12);
        memcpy(frame + 12, words, sizeof words);
        memcpy(frame + 12 + sizeof words, buckets[i], bytes);
    }
    int sent = rte_eth_tx_burst(port, 0, frames, count);
    rte_pktmbuf_free_bulk(frames + sent, count - sent);
    return sent;
}

/* Receives frames: for each the packet, its lane, and where its bucket is. Returns their number; `free` takes all packets back. */
int graphmill_dpdk_receive(uint16_t port, void **packets, uint16_t *lanes, void **starts, uint32_t *bytes, int most) {
    know_thread();
    int count = rte_eth_rx_burst(port, 0, (struct rte_mbuf **)packets, most);
    for (int i = 0; i < count; i++) {
        struct rte_mbuf *packet = packets[i];
        char *frame = rte_pktmbuf_mtod(packet, char *);
        uint32_t length = rte_pktmbuf_data_len(packet);
        uint16_t type = 0;
        if (length >= 16) memcpy(&type, frame + 12, 2);
        int ours = type == rte_cpu_to_be_16(TYPE) && packet->nb_segs == 1;
        bytes[i] = ours ? length - 16 : 0;
        starts[i] = frame + (ours ? 16 : 0);
        lanes[i] = 0;
        if (ours) memcpy(&lanes[i], frame + 14, 2);
    }
    return count;
}

void graphmill_dpdk_free(void **packets, int count) { rte_pktmbuf_free_bulk((struct rte_mbuf **)packets, count); }

/* Stops the devices, and gives up the memory of packets. */
void graphmill_dpdk_finish(const uint16_t *ports, int count) {
    for (int i = 0; i < count; i++) {
        rte_eth_dev_stop(ports[i]);
        rte_eth_dev_close(ports[i]);
    }
    rte_mempool_free(pool);
    pool = NULL;
}
