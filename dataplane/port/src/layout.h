/* SPDX-License-Identifier: Apache-2.0 */
/* Shared structs and constants: PROTOCOL.md. */
#ifndef DRAY_LAYOUT_H
#define DRAY_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is little-endian");
static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
	      "shared words must be lock-free");

#define WIRE_MAGIC 0x59415244u
#define WIRE_VERSION 1
#define WIRE_MAX 512 /* bytes of a message */
#define WIRE_MAX_FDS 17
#define PORT_NAME 16

enum wire_type {
	WIRE_HELLO = 1,
	WIRE_WELCOME,
	WIRE_OFFER,
	WIRE_MAPPED,
	WIRE_SEALED,
	WIRE_ACTIVE,
	WIRE_REBIND,
	WIRE_STATS,
	WIRE_BYE,
	WIRE_ERROR,
	WIRE_CAPTURE,
	WIRE_CLASSES,
	WIRE_TYPES,
	WIRE_HINTS = 0x8000 /* unknown types from here on are ignored */
};

enum feature {
	FEATURE_MESSAGES = 1u << 0,
	FEATURE_STAMPS = 1u << 1,
	FEATURE_EXTRAS = 1u << 2,
	FEATURE_NETDEV = 1u << 3,
	FEATURE_READOPT = 1u << 4,
	FEATURE_CAPTURE = 1u << 5,
	FEATURE_CLASSES = 1u << 6,
	FEATURES_KNOWN = 0x7f
};

enum wire_flags {
	HELLO_READOPT = 1u << 0,
	WELCOME_READOPTED = 1u << 0,
	WELCOME_CLASSES = 1u << 1, /* a CLASSES message follows */
};

enum clock_kind { CLOCK_KIND_NS = 0, CLOCK_KIND_COUNTER = 1 };
enum hold_policy { HOLD_DROP = 0, HOLD_COPY = 1 };
enum bye_reason { BYE_CLOSING = 0, BYE_RESTART = 1 };
enum rebind_reason { REBIND_DIED = 1, REBIND_LEFT, REBIND_MOVES, REBIND_POLICY };

struct wire_header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t length;
	uint32_t generation;
};
static_assert(sizeof(struct wire_header) == 16, "header");

struct wire_hello {
	uint64_t features;
	char port[PORT_NAME];
	uint32_t queues;
	uint32_t mode;
	uint32_t clock;
	uint32_t flags;
	uint64_t tick_hz;
	uint64_t reserved;
};
static_assert(sizeof(struct wire_hello) == 56 && offsetof(struct wire_hello, tick_hz) == 40,
	      "hello");

struct wire_welcome {
	uint64_t features;
	char port[PORT_NAME];
	uint8_t mac[6];
	uint8_t ip4_prefix;
	uint8_t ip6_prefix;
	uint8_t ip4[4];
	uint32_t mtu;
	uint8_t ip6[16];
	uint32_t queues;
	uint32_t sample_shift;
	uint32_t hold_quota;
	uint32_t hold_policy;
	uint64_t telemetry_size;
	uint32_t flags;
	uint32_t reserved;
};
static_assert(sizeof(struct wire_welcome) == 88 &&
		      offsetof(struct wire_welcome, telemetry_size) == 72,
	      "welcome");

#define SAMPLE_NONE 0xffffffffu
#define SAMPLE_SHIFT_MAX 20

struct geometry {
	uint64_t size;
	uint32_t page_size;
	uint32_t queues;
	uint32_t ring_size;
	uint32_t pkt_slots;
	uint32_t pkt_stride;
	uint32_t pkt_headroom;
	uint32_t msg_slots;
	uint32_t msg_stride;
	uint32_t msg_headroom;
	uint32_t reserved;
};
static_assert(sizeof(struct geometry) == 48 && offsetof(struct geometry, msg_slots) == 32,
	      "geometry");

struct wire_offer {
	uint32_t kind;
	uint32_t side;
	uint32_t peer_mode;
	uint32_t queues;
	struct geometry geometry;
	uint64_t features;
	uint32_t clock;
	uint32_t reserved;
};
static_assert(sizeof(struct wire_offer) == 80 && offsetof(struct wire_offer, features) == 64,
	      "offer");

struct wire_mapped {
	uint64_t inode;
};

struct wire_rebind {
	uint32_t reason;
	uint32_t next;
};

enum counter {
	COUNT_TX_PACKETS,
	COUNT_TX_BYTES,
	COUNT_RX_PACKETS,
	COUNT_RX_BYTES,
	COUNT_TX_NO_BUFFER,
	COUNT_TX_DROPPED,
	COUNT_TX_COPIED,
	COUNT_RX_DROPPED,
	COUNT_RX_COPIED,
	COUNT_MISUSE,
	COUNT_VIOLATION, /* the first of 12 */
	COUNTERS = COUNT_VIOLATION + 12
};

struct wire_stats {
	uint32_t queues;
	uint32_t reserved;
	uint64_t counters[COUNTERS];
};
static_assert(sizeof(struct wire_stats) == 184, "stats");

struct wire_bye {
	uint32_t reason;
	uint32_t reserved;
};

struct wire_error {
	uint32_t code;
	uint32_t about;
	char text[64];
};
static_assert(sizeof(struct wire_error) == 72, "error");

/* From the broker. All 0: stop. */
struct wire_capture {
	uint64_t size;
	uint32_t slots;
	uint32_t slot_size;
	uint32_t snaplen;
	uint32_t queues;
	uint64_t reserved;
};
static_assert(sizeof(struct wire_capture) == 32 && offsetof(struct wire_capture, queues) == 20,
	      "capture");

/* The end's answer to a start. */
struct wire_captured {
	uint32_t error;
	uint32_t reserved;
};

#define CLASSES_MAX 8u
#define CLASS_RATE_MAX 10000000000000ull /* bit/s */

enum class_scheduler { SCHEDULER_NONE, SCHEDULER_STRICT, SCHEDULER_HTB, SCHEDULER_HFSC };

enum class_discipline {
	DISCIPLINE_PFIFO,
	DISCIPLINE_BFIFO,
	DISCIPLINE_SFQ,
	DISCIPLINE_CODEL,
	DISCIPLINE_FQ_CODEL,
	DISCIPLINE_SLOT,
	DISCIPLINES
};

enum class_flags { CLASS_META = 0x01, CLASS_ECN = 0x02, CLASS_REALTIME = 0x04 };

/* A traffic class: PROTOCOL.md, section 12. */
struct wire_class {
	uint64_t dscp;
	uint8_t pcp;
	uint8_t discipline; /* enum class_discipline */
	uint8_t flags;	    /* enum class_flags */
	uint8_t priority;
	uint32_t meta;
	uint64_t rate;
	uint64_t ceil;
	uint64_t peak;
	uint32_t peak_ns;
	uint32_t limit;
	uint32_t target_ns;
	uint32_t interval_ns;
};
static_assert(sizeof(struct wire_class) == 56 && offsetof(struct wire_class, limit) == 44, "class");

struct wire_classes {
	uint32_t scheduler; /* enum class_scheduler */
	uint32_t classes;
	uint64_t rate;
	uint32_t burst;
	uint32_t reserved;
	uint64_t reserved2;
	struct wire_class class[CLASSES_MAX];
};
static_assert(sizeof(struct wire_classes) == 480 && offsetof(struct wire_classes, class) == 32,
	      "classes");

/* The end's answer. */
struct wire_classed {
	uint32_t error;
	uint32_t reserved;
};

/* The data memfd. */

#define LAYOUT_PAGE 4096u
/* bytes that a shared word has for itself: a line, and the one the prefetcher brings along */
#define LAYOUT_ALONE 128u
#define LAYOUT_SIZE_MAX (64ull << 30)

struct shared_word {
	_Alignas(LAYOUT_ALONE) _Atomic uint32_t value;
};
static_assert(sizeof(struct shared_word) == LAYOUT_ALONE, "shared word");

/* Descriptor v1, as the two words by which it is stored and loaded. */
struct descriptor {
	_Atomic uint64_t place_length; /* region and slot in the low half, length in the high */
	_Atomic uint64_t offset_flags_meta;
};
static_assert(sizeof(struct descriptor) == 16, "descriptor");

struct lane_words {
	/*
	 * Next to the newest descriptor: a receiver that sees the tail of a single packet has its
	 * descriptor without another miss.
	 */
	_Alignas(LAYOUT_ALONE) _Atomic uint32_t tail;
	_Atomic uint32_t newest_tail; /* the tail that newest belongs to */
	_Alignas(16) struct descriptor newest;
	struct shared_word returned;
	struct shared_word receiver_bell;
	struct shared_word sender_bell;
};
static_assert(sizeof(struct lane_words) == 512 && offsetof(struct lane_words, newest_tail) == 4 &&
		      offsetof(struct lane_words, newest) == 16 &&
		      offsetof(struct lane_words, returned) == 128 &&
		      offsetof(struct lane_words, sender_bell) == 384,
	      "words of a lane");

struct extension {
	_Atomic uint64_t stamp;
	_Atomic uint64_t hash_vlan; /* hash in the low half, then the tag */
};
static_assert(sizeof(struct extension) == 16, "extension");

#define PLACE_SLOT_BITS 24
#define PLACE_SLOT_MASK 0xffffffu
enum region { REGION_PACKETS = 0, REGION_MESSAGES = 1 };

enum descriptor_flags {
	DESC_END = 0x01,
	DESC_CSUM_NEEDED = 0x02,
	DESC_CSUM_GOOD = 0x04,
	DESC_VLAN = 0x08,
	DESC_HASH = 0x10,
	DESC_STAMP = 0x20,
};

/* The telemetry memfd. */

#define TELEMETRY_MAGIC 0x54415244u
#define TELEMETRY_BLOCK 16384u
#define HISTOGRAM_SIZE 1184u
#define HISTOGRAM_MAX_BIT 40

enum telemetry_state { TELEMETRY_DOWN = 0, TELEMETRY_LIVE = 1, TELEMETRY_LOST = 2 };

struct telemetry_class {
	_Atomic uint64_t packets;
	_Atomic uint64_t bytes;
	_Atomic uint64_t dropped;
	_Atomic uint64_t late;
	_Atomic uint64_t marked;
	_Atomic uint32_t queued;
	_Atomic uint32_t queued_most;
	_Atomic uint64_t queued_bytes;
	_Atomic uint64_t longest_ns;
};
static_assert(sizeof(struct telemetry_class) == 64, "telemetry of a class");

struct telemetry_header {
	_Atomic uint32_t magic;
	_Atomic uint32_t version;
	_Atomic uint32_t queues;
	_Atomic uint32_t state;
	_Atomic uint32_t generation;
	_Atomic uint32_t clock;
	_Atomic uint64_t tick_hz;
	_Alignas(128) _Atomic uint32_t sample_shift;
	_Alignas(512) struct wire_classes classes; /* in use */
	_Alignas(1024) struct telemetry_class class[CLASSES_MAX];
};
static_assert(offsetof(struct telemetry_header, classes) == 512 &&
		      offsetof(struct telemetry_header, class) == 1024,
	      "telemetry");
static_assert(offsetof(struct telemetry_header, tick_hz) == 24, "telemetry");
static_assert(offsetof(struct telemetry_header, sample_shift) == 128, "telemetry");

struct telemetry_block {
	_Atomic uint64_t counters[COUNTERS];
	_Atomic uint64_t depth;
	uint64_t reserved;
	_Atomic uint64_t histogram[HISTOGRAM_SIZE];
};
static_assert(offsetof(struct telemetry_block, depth) == 176, "telemetry block");
static_assert(offsetof(struct telemetry_block, histogram) == 192, "telemetry block");
static_assert(sizeof(struct telemetry_block) <= TELEMETRY_BLOCK, "telemetry block");

/* The capture memfd. */

#define CAPTURE_SLOTS_MIN 64u
#define CAPTURE_SLOTS_MAX 65536u
#define CAPTURE_SNAPLEN_MAX 262144u
#define CAPTURE_SIZE_MAX (1ull << 30)

struct capture_words {
	_Alignas(LAYOUT_ALONE) _Atomic uint32_t tail; /* records written; the end's */
	uint32_t reserved;
	_Atomic uint64_t lost; /* packets for which there was no room; the end's */
	_Alignas(LAYOUT_ALONE) _Atomic uint32_t head; /* records read; the reader's */
};
static_assert(sizeof(struct capture_words) == 256 && offsetof(struct capture_words, lost) == 8 &&
		      offsetof(struct capture_words, head) == 128,
	      "words of a capture ring");

/* The bytes follow it. */
struct capture_record {
	uint64_t time; /* ns since 1970 */
	uint32_t length;
	uint32_t captured;
	uint32_t flags; /* CSUM_NEEDED, CSUM_GOOD */
	uint32_t meta;
	uint64_t reserved;
};
static_assert(sizeof(struct capture_record) == 32, "capture record");

#endif
