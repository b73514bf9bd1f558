/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h is what <linux/sctp.h> says. Compiling it is the test. */
#include <stddef.h>
#include <netinet/in.h>
#include <netinet/sctp.h>

#include "kernel.h"

#define SAME(ours, theirs, last_ours, last_theirs)                                                 \
	_Static_assert(sizeof(struct ours) == sizeof(struct theirs) &&                             \
			       offsetof(struct ours, last_ours) ==                                 \
				       offsetof(struct theirs, last_theirs),                       \
		       #theirs)
#define NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(k_sndrcvinfo, sctp_sndrcvinfo, assoc_id, sinfo_assoc_id);
SAME(k_sndrcvinfo, sctp_sndrcvinfo, timetolive, sinfo_timetolive);
SAME(k_sndinfo, sctp_sndinfo, assoc_id, snd_assoc_id);
SAME(k_rcvinfo, sctp_rcvinfo, context, rcv_context);
SAME(k_prinfo, sctp_prinfo, value, pr_value);
SAME(k_initmsg, sctp_initmsg, max_init_timeo, sinit_max_init_timeo);
SAME(k_assocparams, sctp_assocparams, cookie_life, sasoc_cookie_life);
SAME(k_prim, sctp_prim, addr, ssp_addr);
SAME(k_paddrparams, sctp_paddrparams, flags, spp_flags);
SAME(k_paddrparams, sctp_paddrparams, ipv6_flowlabel, spp_ipv6_flowlabel);
SAME(k_paddrinfo, sctp_paddrinfo, mtu, spinfo_mtu);
SAME(k_status, sctp_status, primary, sstat_primary);
SAME(k_event, sctp_event, on, se_on);
SAME(k_getaddrs, sctp_getaddrs, addrs, addrs);
SAME(k_assoc_change, sctp_assoc_change, assoc_id, sac_assoc_id);
SAME(k_paddr_change, sctp_paddr_change, assoc_id, spc_assoc_id);
SAME(k_remote_error, sctp_remote_error, assoc_id, sre_assoc_id);
SAME(k_send_failed, sctp_send_failed, assoc_id, ssf_assoc_id);
SAME(k_send_failed_event, sctp_send_failed_event, assoc_id, ssf_assoc_id);
SAME(k_shutdown_event, sctp_shutdown_event, assoc_id, sse_assoc_id);
SAME(k_adaptation_event, sctp_adaptation_event, assoc_id, sai_assoc_id);
SAME(k_pdapi_event, sctp_pdapi_event, seq, pdapi_seq);
_Static_assert(sizeof(struct k_peeloff) == sizeof(sctp_peeloff_arg_t), "peeloff");
_Static_assert(sizeof(struct k_peeloff_flags) == sizeof(sctp_peeloff_flags_arg_t), "peeloff flags");
_Static_assert(K_EVENT_KINDS == sizeof(struct sctp_event_subscribe), "events");

NUMBER(K_RTOINFO, SCTP_RTOINFO);
NUMBER(K_ASSOCINFO, SCTP_ASSOCINFO);
NUMBER(K_INITMSG, SCTP_INITMSG);
NUMBER(K_NODELAY, SCTP_NODELAY);
NUMBER(K_AUTOCLOSE, SCTP_AUTOCLOSE);
NUMBER(K_PRIMARY_ADDR, SCTP_PRIMARY_ADDR);
NUMBER(K_ADAPTATION_LAYER, SCTP_ADAPTATION_LAYER);
NUMBER(K_DISABLE_FRAGMENTS, SCTP_DISABLE_FRAGMENTS);
NUMBER(K_PEER_ADDR_PARAMS, SCTP_PEER_ADDR_PARAMS);
NUMBER(K_DEFAULT_SEND_PARAM, SCTP_DEFAULT_SEND_PARAM);
NUMBER(K_EVENTS, SCTP_EVENTS);
NUMBER(K_MAXSEG, SCTP_MAXSEG);
NUMBER(K_STATUS, SCTP_STATUS);
NUMBER(K_GET_PEER_ADDR_INFO, SCTP_GET_PEER_ADDR_INFO);
NUMBER(K_DELAYED_SACK, SCTP_DELAYED_SACK);
NUMBER(K_CONTEXT, SCTP_CONTEXT);
NUMBER(K_FRAGMENT_INTERLEAVE, SCTP_FRAGMENT_INTERLEAVE);
NUMBER(K_PARTIAL_DELIVERY_POINT, SCTP_PARTIAL_DELIVERY_POINT);
NUMBER(K_MAX_BURST, SCTP_MAX_BURST);
NUMBER(K_GET_ASSOC_NUMBER, SCTP_GET_ASSOC_NUMBER);
NUMBER(K_GET_ASSOC_ID_LIST, SCTP_GET_ASSOC_ID_LIST);
NUMBER(K_RECVRCVINFO, SCTP_RECVRCVINFO);
NUMBER(K_DEFAULT_SNDINFO, SCTP_DEFAULT_SNDINFO);
NUMBER(K_BINDX_ADD, SCTP_SOCKOPT_BINDX_ADD);
NUMBER(K_BINDX_REM, SCTP_SOCKOPT_BINDX_REM);
NUMBER(K_PEELOFF, SCTP_SOCKOPT_PEELOFF);
NUMBER(K_GET_PEER_ADDRS, SCTP_GET_PEER_ADDRS);
NUMBER(K_GET_LOCAL_ADDRS, SCTP_GET_LOCAL_ADDRS);
NUMBER(K_CONNECTX, SCTP_SOCKOPT_CONNECTX);
NUMBER(K_CONNECTX3, SCTP_SOCKOPT_CONNECTX3);
NUMBER(K_PEELOFF_FLAGS, SCTP_SOCKOPT_PEELOFF_FLAGS);
NUMBER(K_EVENT, SCTP_EVENT);
NUMBER(K_SNDRCV, SCTP_SNDRCV);
NUMBER(K_SNDINFO, SCTP_SNDINFO);
NUMBER(K_RCVINFO, SCTP_RCVINFO);
NUMBER(K_PRINFO, SCTP_PRINFO);
NUMBER(K_UNORDERED, SCTP_UNORDERED);
NUMBER(K_ADDR_OVER, SCTP_ADDR_OVER);
NUMBER(K_ABORT, SCTP_ABORT);
NUMBER(K_SACK_IMMEDIATELY, SCTP_SACK_IMMEDIATELY);
NUMBER(K_SENDALL, SCTP_SENDALL);
NUMBER(K_EOF, SCTP_EOF);
NUMBER(K_PR_TTL, SCTP_PR_SCTP_TTL);
NUMBER(K_PR_RTX, SCTP_PR_SCTP_RTX);
NUMBER(K_PR_MASK, SCTP_PR_SCTP_MASK);
NUMBER(K_MSG_NOTIFICATION, MSG_NOTIFICATION);
NUMBER(K_DATA_IO, SCTP_DATA_IO_EVENT);
NUMBER(K_SHUTDOWN_EVENT, SCTP_SHUTDOWN_EVENT);
NUMBER(K_SEND_FAILED_EVENT, SCTP_SEND_FAILED_EVENT);
NUMBER(K_CLOSED, SCTP_CLOSED);
NUMBER(K_SHUTDOWN_ACK_SENT, SCTP_SHUTDOWN_ACK_SENT);
NUMBER(K_ACTIVE, SCTP_ACTIVE);
NUMBER(K_UNCONFIRMED, SCTP_UNCONFIRMED);
NUMBER(K_SPP_HB, SPP_HB);
NUMBER(K_SPP_HB_DEMAND, SPP_HB_DEMAND);
NUMBER(K_SPP_PMTUD_ENABLE, SPP_PMTUD_ENABLE);
NUMBER(K_SPP_PMTUD_DISABLE, SPP_PMTUD_DISABLE);
NUMBER(K_SPP_HB_TIME_IS_ZERO, SPP_HB_TIME_IS_ZERO);

int main(void)
{
	return 0;
}
