/* SPDX-License-Identifier: Apache-2.0 */
/* One-to-many sockets: boundaries, streams, payload protocols, notifications, ends. */
#include "rig.h"

#define MESSAGES 200

/* The next notification of a type; messages before it fail the test. */
static union sctp_notification notification(int fd, int type)
{
	union {
		char bytes[2048];
		union sctp_notification as;
	} got;
	int flags = 0;
	ssize_t n;

	do {
		flags = 0;
		n = sctp_recvmsg(fd, &got, sizeof(got), NULL, NULL, NULL, &flags);
		CHECK(n >= (ssize_t)sizeof(got.as.sn_header));
		CHECK(flags & MSG_NOTIFICATION);
		CHECK_EQ(got.as.sn_header.sn_length, n);
	} while (got.as.sn_header.sn_type != type);
	return got.as;
}

static void echo(int fd)
{
	char data[4096];

	for (int i = 0; i < MESSAGES; i++) {
		struct sockaddr_in from;
		socklen_t from_size = sizeof(from);
		struct sctp_sndrcvinfo info;
		int flags = 0;
		ssize_t n = sctp_recvmsg(fd, data, sizeof(data), ADDRESS(from), &from_size, &info,
					 &flags);

		CHECK(n > 0);
		CHECK(flags == MSG_EOR);
		CHECK_EQ(from_size, sizeof(from));
		CHECK_EQ(from.sin_addr.s_addr, rig_ip4(1, 2, 0).sin_addr.s_addr);
		if (i % 2)
			CHECK_EQ(sctp_sendmsg(fd, data, (size_t)n, ADDRESS(from), from_size,
					      info.sinfo_ppid, 0, info.sinfo_stream, 0, 0),
				 n);
		else
			CHECK_EQ(sctp_send(fd, data, (size_t)n, &info, 0), n);
	}
}

static void server(void)
{
	int fd = rig_listen(SOCK_SEQPACKET, PORT);
	struct sctp_assoc_change change;

	rig_subscribe(fd, true);
	rig_meet();
	change = notification(fd, SCTP_ASSOC_CHANGE).sn_assoc_change;
	CHECK_EQ(change.sac_state, SCTP_COMM_UP);
	CHECK(change.sac_assoc_id > 0);
	CHECK_EQ(change.sac_inbound_streams, 7);
	echo(fd);
	CHECK_EQ(notification(fd, SCTP_SHUTDOWN_EVENT).sn_shutdown_event.sse_assoc_id,
		 change.sac_assoc_id);
	CHECK_EQ(notification(fd, SCTP_ASSOC_CHANGE).sn_assoc_change.sac_state, SCTP_SHUTDOWN_COMP);
	rig_meet();
	/* The second association is aborted. */
	CHECK_EQ(notification(fd, SCTP_ASSOC_CHANGE).sn_assoc_change.sac_state, SCTP_COMM_UP);
	rig_meet();
	CHECK_EQ(notification(fd, SCTP_ASSOC_CHANGE).sn_assoc_change.sac_state, SCTP_COMM_LOST);
	close(fd);
}

static void talk(int fd, struct sockaddr_in *to)
{
	char data[4096], back[4096];

	for (int i = 0; i < MESSAGES; i++) {
		size_t size = 1 + (size_t)i * 17 % 3000;
		struct sctp_sndrcvinfo info = {0};
		int flags = 0;

		rig_fill(data, size, (unsigned)i);
		CHECK_EQ(sctp_sendmsg(fd, data, size, (struct sockaddr *)to, sizeof(*to),
				      htonl(18u + (unsigned)i), 0, (uint16_t)(i % 7), 0, 0),
			 size);
		CHECK_EQ(sctp_recvmsg(fd, back, sizeof(back), NULL, NULL, &info, &flags), size);
		CHECK(rig_is(back, size, (unsigned)i));
		CHECK_EQ(info.sinfo_stream, i % 7);
		CHECK_EQ(ntohl(info.sinfo_ppid), 18 + i);
		CHECK(flags & MSG_EOR);
	}
}

static int client_socket(void)
{
	struct sctp_initmsg init = {.sinit_num_ostreams = 7, .sinit_max_instreams = 9};
	int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof(init)), 0);
	rig_subscribe(fd, false);
	return fd;
}

static void client(void)
{
	struct sockaddr_in to = rig_ip4(1, 1, PORT), none = rig_ip4(1, 1, PORT + 1);
	struct sctp_rtoinfo times = {.srto_initial = 100, .srto_min = 100, .srto_max = 200};
	struct sctp_initmsg few = {.sinit_max_attempts = 2, .sinit_max_init_timeo = 200};
	int fd = client_socket();

	rig_meet();
	talk(fd, &to); /* the first message makes the association */
	close(fd);
	rig_meet();
	fd = client_socket();
	CHECK_EQ(connect(fd, ADDRESS(to), sizeof(to)), 0);
	rig_meet();
	/* Where nobody listens. Packets of others' associations get no answer (README). */
	if (!rig_udp) {
		CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_RTOINFO, &times, sizeof(times)), 0);
		CHECK_EQ(setsockopt(fd, IPPROTO_SCTP, SCTP_INITMSG, &few, sizeof(few)), 0);
	}
	CHECK_EQ(connect(fd, ADDRESS(none), sizeof(none)), -1);
	CHECK_EQ(errno, rig_udp ? ECONNREFUSED : ETIMEDOUT);
	CHECK_EQ(sctp_sendmsg(fd, "x", 1, ADDRESS(to), sizeof(to), 0, SCTP_ABORT, 0, 0, 0), 1);
	close(fd);
}

int main(int argc, char **argv)
{
	return rig_main(argc, argv, server, client);
}
