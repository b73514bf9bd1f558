/* SPDX-License-Identifier: Apache-2.0 */
/* Why a packet is not forwarded. */
#ifndef VNF_REASON_H
#define VNF_REASON_H

/* Name in the program, name in the statistics. docs/vnf.md explains each. */
#define REASONS(X)                                                                                 \
	X(PASS, "pass")                                                                            \
	X(DROP_SEGMENTS, "segments")                                                               \
	X(DROP_SHORT, "short")                                                                     \
	X(DROP_HEADERS, "headers_too_long")                                                        \
	X(DROP_TYPE, "ethertype")                                                                  \
	X(DROP_TAG, "vlan_tags")                                                                   \
	X(DROP_MPLS, "mpls")                                                                       \
	X(DROP_ARP, "arp")                                                                         \
	X(DROP_IP4, "ip_header")                                                                   \
	X(DROP_LENGTH, "length")                                                                   \
	X(DROP_CHECKSUM, "checksum")                                                               \
	X(DROP_TTL, "ttl")                                                                         \
	X(DROP_ADDRESS, "address")                                                                 \
	X(DROP_FRAGMENT, "fragment")                                                               \
	X(DROP_ECN, "ecn")                                                                         \
	X(DROP_ROUTE, "no_route")                                                                  \
	X(DROP_PROTOCOL, "protocol")                                                               \
	X(DROP_TUNNEL, "tunnel_address")                                                           \
	X(DROP_GRE, "gre")                                                                         \
	X(DROP_GTP, "gtp_header")                                                                  \
	X(DROP_GTP_TYPE, "gtp_message")                                                            \
	X(DROP_EXTENSION, "gtp_extension")                                                         \
	X(DROP_QFI, "qfi")                                                                         \
	X(DROP_USER, "unknown_user")                                                               \
	X(DROP_SOURCE, "foreign_source")                                                           \
	X(DROP_TOO_BIG, "too_big")                                                                 \
	X(DROP_HEADROOM, "headroom")                                                               \
	X(DROP_MEMORY, "no_memory")                                                                \
	X(DROP_WORKER, "no_worker")                                                                \
	X(DROP_ANNOUNCEMENT, "announcement")                                                       \
	X(DROP_RING, "ring_full")                                                                  \
	X(DROP_TX, "tx_full")

#define REASON_ENUM(id, name) id,
enum reason { REASONS(REASON_ENUM) REASON_COUNT };
#undef REASON_ENUM

const char *reason_name(enum reason reason);

#endif
