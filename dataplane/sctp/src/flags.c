/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of messages. */
#include "flags.h"

#include <stddef.h>
#include <usrsctp.h>

#include "kernel.h"

static const struct {
	uint16_t linux_flag, ours;
} pairs[] = {
	{K_UNORDERED, SCTP_UNORDERED}, {K_ADDR_OVER, SCTP_ADDR_OVER},
	{K_ABORT, SCTP_ABORT},	       {K_SACK_IMMEDIATELY, SCTP_SACK_IMMEDIATELY},
	{K_SENDALL, SCTP_SENDALL},     {K_EOF, SCTP_EOF},
};

uint16_t flags_to_send(uint16_t from)
{
	uint16_t to = 0;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		to |= from & pairs[i].linux_flag ? pairs[i].ours : 0;
	return to;
}

uint16_t flags_from_send(uint16_t from)
{
	uint16_t to = 0;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		to |= from & pairs[i].ours ? pairs[i].linux_flag : 0;
	return to;
}
