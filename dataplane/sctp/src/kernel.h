/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SCTP's socket API as Linux has it. <linux/sctp.h> and <usrsctp.h> give the same names to
 * different things, so no file can include both: here the names begin with K_ or k_. tests/layout.c
 * compares them with <linux/sctp.h>.
 */
#ifndef DRAY_SCTP_KERNEL_H
#define DRAY_SCTP_KERNEL_H

#include <stdint.h>
#include <sys/socket.h>

enum k_option {
	K_RTOINFO = 0,
	K_ASSOCINFO = 1,
	K_INITMSG = 2,
	K_NODELAY = 3,
	K_AUTOCLOSE = 4,
	K_PRIMARY_ADDR = 6,
	K_ADAPTATION_LAYER = 7,
	K_DISABLE_FRAGMENTS = 8,
	K_PEER_ADDR_PARAMS = 9,
	K_DEFAULT_SEND_PARAM = 10,
	K_EVENTS = 11,
	K_MAXSEG = 13,
	K_STATUS = 14,
	K_GET_PEER_ADDR_INFO = 15,
	K_DELAYED_SACK = 16,
	K_CONTEXT = 17,
	K_FRAGMENT_INTERLEAVE = 18,
	K_PARTIAL_DELIVERY_POINT = 19,
	K_MAX_BURST = 20,
	K_GET_ASSOC_NUMBER = 28,
	K_GET_ASSOC_ID_LIST = 29,
	K_RECVRCVINFO = 32,
	K_DEFAULT_SNDINFO = 34,
	K_BINDX_ADD = 100,
	K_BINDX_REM = 101,
	K_PEELOFF = 102,
	K_GET_PEER_ADDRS = 108,
	K_GET_LOCAL_ADDRS = 109,
	K_CONNECTX = 110,
	K_CONNECTX3 = 111,
	K_PEELOFF_FLAGS = 122,
	K_EVENT = 127,
};

/* Types of control messages. */
enum k_control { K_INIT, K_SNDRCV, K_SNDINFO, K_RCVINFO, K_NXTINFO, K_PRINFO };

/* Flags of a message sent or received. */
enum k_flag {
	K_UNORDERED = 1 << 0,
	K_ADDR_OVER = 1 << 1,
	K_ABORT = 1 << 2,
	K_SACK_IMMEDIATELY = 1 << 3,
	K_PR_TTL = 0x10,
	K_PR_RTX = 0x20,
	K_PR_MASK = 0x30,
	K_SENDALL = 1 << 6,
	K_EOF = 0x200,
	K_MSG_NOTIFICATION = 0x8000,
};

/* Types of notifications; less K_BASE, places in the structure of SCTP_EVENTS. */
enum k_notification {
	K_BASE = 0x8000,
	K_DATA_IO = K_BASE,
	K_ASSOC_CHANGE,
	K_PEER_ADDR_CHANGE,
	K_SEND_FAILED,
	K_REMOTE_ERROR,
	K_SHUTDOWN_EVENT,
	K_PARTIAL_DELIVERY,
	K_ADAPTATION,
	K_AUTHENTICATION,
	K_SENDER_DRY,
	K_STREAM_RESET,
	K_ASSOC_RESET,
	K_STREAM_CHANGE,
	K_SEND_FAILED_EVENT,
	K_END,
};
#define K_EVENT_KINDS (K_END - K_BASE)

enum k_state {
	K_CLOSED = 1,
	K_COOKIE_WAIT,
	K_COOKIE_ECHOED,
	K_ESTABLISHED,
	K_SHUTDOWN_PENDING,
	K_SHUTDOWN_SENT,
	K_SHUTDOWN_RECEIVED,
	K_SHUTDOWN_ACK_SENT,
};

enum k_path { K_INACTIVE, K_PF, K_ACTIVE, K_UNCONFIRMED };

struct k_sndrcvinfo {
	uint16_t stream, ssn, flags;
	uint32_t ppid, context, timetolive, tsn, cumtsn;
	int32_t assoc_id;
};

struct k_sndinfo {
	uint16_t sid, flags;
	uint32_t ppid, context;
	int32_t assoc_id;
};

struct k_rcvinfo {
	uint16_t sid, ssn, flags;
	uint32_t ppid, tsn, cumtsn, context;
	int32_t assoc_id;
};

struct k_prinfo {
	uint16_t policy;
	uint32_t value;
};

struct k_initmsg {
	uint16_t num_ostreams, max_instreams, max_attempts, max_init_timeo;
};

struct k_assocparams {
	int32_t assoc_id;
	uint16_t asocmaxrxt, number_peer_destinations;
	uint32_t peer_rwnd, local_rwnd, cookie_life;
};

struct k_prim {
	int32_t assoc_id;
	struct sockaddr_storage addr;
} __attribute__((packed, aligned(4)));

struct k_paddrparams {
	int32_t assoc_id;
	struct sockaddr_storage address;
	uint32_t hbinterval;
	uint16_t pathmaxrxt;
	uint32_t pathmtu, sackdelay, flags, ipv6_flowlabel;
	uint8_t dscp;
} __attribute__((packed, aligned(4)));

/* Flags of k_paddrparams. */
enum {
	K_SPP_HB = 0x3, /* enable, disable */
	K_SPP_HB_DEMAND = 0x4,
	K_SPP_PMTUD = 0x18,
	K_SPP_PMTUD_ENABLE = 0x8,
	K_SPP_PMTUD_DISABLE = 0x10,
	K_SPP_HB_TIME_IS_ZERO = 0x80,
};

struct k_paddrinfo {
	int32_t assoc_id;
	struct sockaddr_storage address;
	int32_t state;
	uint32_t cwnd, srtt, rto, mtu;
} __attribute__((packed, aligned(4)));

struct k_status {
	int32_t assoc_id, state;
	uint32_t rwnd;
	uint16_t unackdata, penddata, instrms, outstrms;
	uint32_t fragmentation_point;
	struct k_paddrinfo primary;
};

struct k_event {
	int32_t assoc_id;
	uint16_t type;
	uint8_t on;
};

/* Addresses follow one another, each as long as its family has it. */
struct k_getaddrs {
	int32_t assoc_id;
	uint32_t addr_num;
	uint8_t addrs[];
};

struct k_connectx3 {
	int32_t assoc_id;
	int addr_num; /* bytes */
	struct sockaddr *addrs;
};

struct k_peeloff {
	int32_t assoc_id;
	int sd;
};

struct k_peeloff_flags {
	struct k_peeloff arg;
	unsigned flags;
};

/* Notifications. Each begins with type, flags and length. */
struct k_assoc_change {
	uint16_t type, flags;
	uint32_t length;
	uint16_t state, error, outbound_streams, inbound_streams;
	int32_t assoc_id;
};

struct k_paddr_change {
	uint16_t type, flags;
	uint32_t length;
	struct sockaddr_storage addr;
	int state, error;
	int32_t assoc_id;
} __attribute__((packed, aligned(4)));

struct k_remote_error {
	uint16_t type, flags;
	uint32_t length;
	uint16_t error;
	int32_t assoc_id;
};

struct k_send_failed {
	uint16_t type, flags;
	uint32_t length, error;
	struct k_sndrcvinfo info;
	int32_t assoc_id;
};

struct k_send_failed_event {
	uint16_t type, flags;
	uint32_t length, error;
	struct k_sndinfo info;
	int32_t assoc_id;
};

struct k_shutdown_event {
	uint16_t type, flags;
	uint32_t length;
	int32_t assoc_id;
};

struct k_adaptation_event {
	uint16_t type, flags;
	uint32_t length, indication;
	int32_t assoc_id;
};

struct k_pdapi_event {
	uint16_t type, flags;
	uint32_t length, indication;
	int32_t assoc_id;
	uint32_t stream, seq;
};

#endif
