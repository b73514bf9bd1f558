/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of a shared-memory link: a million packets with every header and every byte checked,
 * and round trips. Then the longest frames of a link over devices.
 */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker.h"
#include "io.h"
#include "support.h"

#define PACKETS "1000000"

static void all(void)
{
	struct child sink = START("sink", "--port", "dray:b", "--once", "--check", "--strict",
				  "--spin", "10us"),
		     sender;
	char *r;

	sender = START("send", "--port", "dray:a", "--rate", "max", "--packets", PACKETS, "--check",
		       "--strict", "--spin", "10us", "--size", "128");
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "sent"), atof(PACKETS));
	CHECK(strstr(r, "\"kind\":\"shm\""));
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), atof(PACKETS));
	CHECK_EQ(json_number(r, "violations"), 0);
	free(r);
}

/* Pings whose packets all come back, through a sink that reflects. Returns the result. */
#define PINGS(stream, packets, ...)                                                                \
	pings_of(START("ping", "--port", "dray:a", "--stream", stream, "--packets", packets,       \
		       "--timeout", "10s", "--strict", __VA_ARGS__),                               \
		 packets)

static char *pings_of(struct child ping, const char *packets)
{
	char *r = child_result(&ping, 0);

	CHECK_EQ(json_number(r, "received"), atof(packets));
	return r;
}

static void round_trips(void)
{
	struct child sink = START("sink", "--port", "dray:b", "--reflect", "--spin", "auto");
	char *r;

	r = PINGS("1", "1000", "--rate", "max", "--closed");
	CHECK_EQ(json_number(r, "foreign"), 0);
	free(r);
	/*
	 * No more than the link holds: replies that find it full are dropped, and a busy machine
	 * may delay the thread that waits for them.
	 */
	r = PINGS("2", "100", "--rate", "4kpps", "--catch-up", "60s", "--check", "--size", "imix");
	free(r);
	r = PINGS("3", "1000", "--rate", "max", "--closed", "--to", "[fd00::2]:5010", "--size",
		  "80", "--spin", "auto");
	CHECK_EQ(json_number(r, "received_bytes"), 80000);
	free(r);
	r = PINGS("4", "1000", "--rate", "max", "--closed", "--check", "--encap",
		  "gre-mpls:label=3,key=0,from=198.18.1.2,to=198.18.1.1", "--flows", "256",
		  "--size", "imix");
	CHECK_EQ(json_number(r, "received_bytes"), json_number(r, "sent_bytes"));
	free(r);
	kill(sink.pid, SIGTERM);
	r = child_result(&sink, 0);
	/* With the end packets that came; the last of each goes when its sender does. */
	CHECK(json_number(r, "reflected") + json_number(r, "reflect_dropped") >= 3100);
	CHECK(json_number(r, "reflected") + json_number(r, "reflect_dropped") <= 3132);
	CHECK_EQ(json_number(r, "violations"), 0);
	free(r);
}

/* The link is full when the sender is done: it waits until the receiver has room for the end. */
static void late_receiver(void)
{
	struct child sink = START("sink", "--port", "dray:b", "--once"),
		     sender = START("send", "--port", "dray:a", "--rate", "max", "--duration",
				    "200ms");
	double sent;
	char *r;

	kill(sink.pid, SIGSTOP);
	sleep(3);
	kill(sink.pid, SIGCONT);
	r = child_result(&sender, 0);
	sent = json_number(r, "sent");
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), sent);
	free(r);
}

/* Both ends in one thread: a full link is relieved by the thread that waits for room on it. */
static void one_thread(void)
{
	struct child loop =
		START("loop", "--port", "dray:a", "--to-port", "dray:b", "--both", "--packets",
		      "200000", "--rate", "max", "--burst", "1024", "--check", "--strict", "--size",
		      "imix", "--encap", "qinq:s=1,c=1", "--flows", "256", "--back-encap",
		      "gre-mpls:label=3,key=0,from=198.18.1.2,to=198.18.1.1");
	char *r = child_result(&loop, 0);

	CHECK_EQ(json_number(strstr(r, "\"forward\""), "sink.received"), 200000);
	CHECK_EQ(json_number(strstr(r, "\"backward\""), "sink.received"), 200000);
	CHECK(json_number(strstr(r, "\"forward\""), "sender.full") > 0);
	CHECK(json_number(strstr(r, "\"forward\""), "sender.full_ns") > 0);
	CHECK(json_number(strstr(r, "\"forward\""), "sender.full_ns") <
	      json_number(strstr(r, "\"forward\""), "sender.elapsed_ns"));
	free(r);
}

/* Fronthaul of 51 PRB, both ways. */
static void fronthaul(void)
{
	struct child loop = START("loop", "--port", "dray:a", "--to-port", "dray:b", "--both",
				  "--packets", "3000", "--fronthaul", "scs=30,prb=51,layers=4",
				  "--check", "--catch-up", "60s");
	char *r = child_result(&loop, 0);

	for (unsigned i = 0; i < 2; i++) {
		const char *way = strstr(r, i ? "\"backward\"" : "\"forward\"");

		CHECK_EQ(json_number(way, "sink.received"), 3000);
		CHECK_EQ(json_number(way, "sink.corrupt"), 0);
		CHECK_EQ(json_number(strstr(way, "c_plane"), "window_ns"), 144000);
	}
	free(r);
}

/* Two ends, each of its own process. Returns the sink's result. */
static char *fapi_over(const char *profile, const char *packets, const char *check)
{
	struct child sink = START("sink", "--port", "dray:b", "--once", "--fapi", profile, check),
		     sender = START("send", "--port", "dray:a", "--fapi", profile, "--packets",
				    packets, "--catch-up", "60s", check);
	char *r = child_result(&sender, 0);

	CHECK_EQ(json_number(r, "unsent"), 0);
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), atof(packets));
	CHECK_EQ(json_number(r, "corrupt") + json_number(r, "foreign"), 0);
	CHECK_EQ(json_number(r, "reordered") + json_number(r, "violations"), 0);
	return r;
}

static double judged(const char *result, const char *kind)
{
	const char *k = strstr(result, kind);

	CHECK(k != NULL);
	CHECK_EQ(json_number(k, "early"), 0);
	CHECK_EQ(json_number(k, "on_time") + json_number(k, "late"),
		 json_number(k, "after_opening.n"));
	return json_number(k, "on_time") + json_number(k, "late") + json_number(k, "sent_late");
}

/* A link with two message buffers, and messages of up to 4 MiB: each is judged. Then both ways. */
static void fapi(void)
{
	struct child loop;
	char *r = fapi_over("scs=30,within=10000", "2000", "--busy");

	CHECK_EQ(json_number(r, "received_bytes"), 1000 * (2048 + 115000));
	CHECK_EQ(judged(r, "\"dl_tti\""), 1000);
	CHECK_EQ(judged(r, "\"tx_data\""), 1000);
	CHECK_EQ(json_number(strstr(r, "\"tx_data\""), "window_ns"), 10000000);
	free(r);
	r = fapi_over("scs=15,dl-tti=128,tx-data=4194304", "60", "--check");
	CHECK_EQ(json_number(r, "received_bytes"), 30 * (128 + (4 << 20)));
	CHECK_EQ(judged(r, "\"dl_tti\"") + judged(r, "\"tx_data\""), 60);
	free(r);
	loop = START("loop", "--port", "dray:a", "--to-port", "dray:b", "--both", "--packets",
		     "1000", "--fapi", "scs=120,tx-data=60000", "--catch-up", "60s");
	r = child_result(&loop, 0);
	CHECK_EQ(json_number(strstr(r, "\"forward\""), "sink.received"), 1000);
	CHECK_EQ(json_number(strstr(r, "\"backward\""), "sink.received"), 1000);
	free(r);
}

static struct io *opened(const struct options *o)
{
	struct io_error error;
	struct io *io = io_open(o, &error);

	CHECK(io != NULL);
	return io;
}

/* On a link with one message buffer, both messages of a slot have room: the first in a packet's. */
static void one_message_buffer(void)
{
	struct options a = {.role = ROLE_SEND, .port = "dray:a", .peer_timeout_ns = 60000000000}, b;
	struct io_buf bufs[3] = {{.length = 1000}, {.length = 100000}, {.length = 100000}};
	struct io *from, *to;
	struct io_error error;

	CHECK(fapi_read("scs=30", &a.fapi) == NULL);
	b = a;
	b.port = "dray:b";
	from = opened(&a);
	to = opened(&b);
	CHECK(io_await_peers((struct io *const[]){from, to}, 2, &a, &error));
	CHECK_EQ(from->frame_max, 120000);
	CHECK_EQ(from->ops->alloc(from, 0, bufs, 3, 100000), 2);
	CHECK_EQ(from->ops->alloc(from, 0, bufs + 2, 1, 100000), 0);
	from->ops->discard(from, bufs, 2);
	io_close(from);
	io_close(to);
}

/* Messages that the link has no buffers for. */
static void fapi_too_long(void)
{
	struct child sink = START("sink", "--port", "dray:b", "--fapi", "scs=30");
	char *r;

	CHECK_EQ(STATUS("send", "--port", "dray:a", "--fapi", "scs=30"), 1);
	/* it may be a network device another time: packet buffers do not count */
	CHECK_EQ(STATUS("send", "--port", "dray:a", "--fapi", "scs=30,dl-tti=128,tx-data=1000"), 1);
	kill(sink.pid, SIGTERM);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 0);
	free(r);
}

/* The peer is killed in the middle, and another takes its place: the sender goes on. */
static void successor(void)
{
	struct child sink = START("sink", "--port", "dray:b"), sender;
	char *r;

	sender = START("send", "--port", "dray:a", "--rate", "2kpps", "--catch-up", "1ms");
	usleep(200000);
	kill(sink.pid, SIGKILL);
	CHECK(child_line(&sink) == NULL);
	fclose(sink.out);
	CHECK(waitpid(sink.pid, NULL, 0) == sink.pid);
	sink = START("sink", "--port", "dray:b", "--once", "--interval", "20ms");
	child_until(&sink, "received");
	kill(sender.pid, SIGTERM);
	r = child_result(&sender, 0);
	CHECK(json_number(r, "sent") > 0);
	CHECK_EQ(json_number(r, "sent") + json_number(r, "unsent"), json_number(r, "scheduled"));
	free(r);
	r = child_result(&sink, 0);
	CHECK(json_number(r, "received") > 0);
	CHECK_EQ(json_number(r, "duplicates"), 0);
	free(r);
}

#define ONE "send", "--port", "dray:a", "--packets", "1"

/*
 * Over a network device frames longer than its MTU are refused: they would count as sent, and none
 * would arrive.
 */
static void device(const struct broker_options *options)
{
	struct broker *broker;
	struct child sink, sender;
	char *r;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		test_skip("shared memory passes; no network namespace can be made: be root, or "
			  "allow user namespaces");
	if (system("ip link add ga type veth peer name gb && ip link set ga up && ip link set gb "
		   "up") != 0)
		test_skip("shared memory passes; no veth pair can be made: it takes the program ip "
			  "(Debian: iproute2)");
	broker = broker_start(options);
	broker_move_netdev(broker, "ga", "gb");
	setenv("DRAY_PORTS", broker_directory(broker), 1);
	sink = START("sink", "--port", "dray:b");
	sender = START(ONE, "--size", "1514");
	r = child_result(&sender, 0);
	CHECK(strstr(r, "\"kind\":\"netdev\""));
	CHECK_EQ(json_number(r, "sent"), 1);
	free(r);
	CHECK_EQ(STATUS(ONE, "--size", "1515"), 1);
	CHECK_EQ(STATUS(ONE, "--size", "1518"), 1);
	CHECK_EQ(STATUS(ONE, "--size", "1518", "--encap", "qinq:s=1,c=1"), 1);
	kill(sink.pid, SIGTERM);
	free(child_result(&sink, 0));
	broker_stop(broker);
}

int main(int argc, char **argv)
{
	struct broker_options options = {
		.geometry = {.ring_size = 512, .pkt_slots = 256, .pkt_stride = 27 * 64}};
	struct broker *broker;
	struct broker_options two = {.geometry = {.msg_slots = 2,
						  .msg_stride = (4u << 20) + 128,
						  .msg_headroom = 128}},
			      one = {.geometry = {.msg_slots = 1,
						  .msg_stride = 120000 + 192,
						  .msg_headroom = 192}};

	test_program(argc, argv);
	broker = broker_start(&options);
	test_clean_up = broker_clean_up;
	setenv("DRAY_PORTS", broker_directory(broker), 1);
	all();
	round_trips();
	late_receiver();
	one_thread();
	fronthaul();
	successor();
	fapi_too_long();
	broker_stop(broker);
	broker = broker_start(&two);
	setenv("DRAY_PORTS", broker_directory(broker), 1);
	fapi();
	broker_stop(broker);
	broker = broker_start(&one);
	setenv("DRAY_PORTS", broker_directory(broker), 1);
	one_message_buffer();
	broker_stop(broker);
	device(&options);
	return 0;
}
