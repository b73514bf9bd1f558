/* SPDX-License-Identifier: Apache-2.0 */
/* How the library starts, and its log. */
#ifndef DRAY_SCTP_START_H
#define DRAY_SCTP_START_H

/*
 * Start usrsctp, once: 1 if SCTP is this library's, 0 if the kernel has it, -errno if there is
 * none, the reason then being on standard error.
 */
int start(void);

/* The UDP port of RFC 6951; 0 if packets are IP's own. */
unsigned start_udp_port(void);

/* A line of the log that DRAY_SCTP_DEBUG=1 asks for. */
__attribute__((format(printf, 1, 2))) void debug(const char *format, ...);

#endif
