/*
 * The handover of Controller Mesh: how a place (a namespace) gets another writer, so that it never has two. README.md
 * says how to check this file, and what is left out. One step is one d_step: nothing comes between its parts.
 *
 * There are two managers, of which one should lead. There are two proxies: proxy 0 writes for one subset of pods, proxy 1
 * for another. The RULES say whose each place is. The ROUTES of a proxy are the places that it lets its pod write.
 *
 * Time has no numbers. A comment ASSUMPTION stands where the protocol waits: what is over by then.
 *
 * MUTANT=n leaves out rule n, to see that the check fails without it:
 *   1 store, then acknowledge          2 end refused writes, then acknowledge   3 grant only after the acknowledgement
 *   4 follow no older leader           5 store a promise before it is given     6 wait for a pod that was removed by force
 *   7 after a kill, acknowledge late   8 register the routes in doubt           9 after a kill, register that there may be more
 *  10 ignore a late registration      11 a new leader waits for unknown pods   12 an update that is undone stays in doubt
 *  13 a full disk loses the old routes 14, 17 a lost promise makes a process wait, 17: also one without routes
 *  15 an unknown proxy claims all     16 register the version                  18 a full disk loses the old promise
 */
#ifndef PLACES
#define PLACES 1 /* how many places there are */
#endif
#ifndef MOVES
#define MOVES 2 /* how often the rules may change */
#endif
/* How many faults of each kind may happen. */
#ifndef CRASH
#define CRASH 0 /* a process of a proxy is killed and starts again, or ends in good order and starts again */
#endif
#ifndef CUT
#define CUT 0 /* a stream is closed at one end, whatever is on its way */
#endif
#ifndef FULL
#define FULL 0 /* the disk of a proxy takes no new content for a while, but a file can be emptied or removed */
#endif
#ifndef LEADER
#define LEADER 0 /* a manager begins to lead, while the one before believes that it still leads */
#endif
#ifndef REMOVAL
#define REMOVAL 0 /* a pod is removed by force, so its processes go on for a while */
#endif
#ifndef DETOURS
#define DETOURS 1 /* how often a proxy may ask a manager that has to turn it away */
#endif
#ifndef MUTANT
#define MUTANT 0 /* which rule is left out, to see that the check finds it */
#endif
#define WithoutRule(n) (MUTANT == n)

/* A set of places is a number with a bit for each. NONE is a proxy without routes: as a set, it is empty. */
#define EVERY ((1 << PLACES) - 1)
#define NONE 128
#define NOWHERE 255 /* no stream */
#define LOST 255 /* a promise file without content */

mtype = { WELCOME, PROMISE, UPDATE, ACK };      /* messages; the registration is a field of its stream */
mtype = { REGISTERS, PROMISES, SERVED };        /* what the manager of a stream waits for */
mtype = { HELD, DRAINING, STORING };            /* how far a proxy is with its routes */
mtype = { THERE, GONE, FORGOTTEN };             /* a pod, as one manager sees it */

bool hasBegun; /* faults may happen */
byte rules; /* the places of proxy 1; the others are those of proxy 0 */
#define Wanted(p, rules) (p == 1 -> rules : EVERY & ~rules)

byte newest = 1; /* the last epoch: a number that each new leadership gets */
byte moves = MOVES, detours = DETOURS;
byte crashes = CRASH, cuts = CUT, fulls = FULL, leads = LEADER, removals = REMOVAL;
hidden byte s, at; /* for use within one step */

typedef Proxy {
  /* In memory. A restart loses it. */
  byte routes = NONE;   /* in force: new writes are judged by them */
  byte version;         /* of these routes */
  mtype stage = HELD;
  byte acked = NONE;    /* the last routes that could be acknowledged */
  byte doubt;           /* all places of the routes that came into force since then */
  bool isDoubtful;      /* some did */
  byte owed;            /* the update that is to be acknowledged on the present stream; 0 if there is none */
  bool isSettled = true;/* no write of a killed process can still take effect */
  byte promised;        /* no leader with an earlier epoch is followed */
  bool hasForgotten;    /* it has found a file of promises without content */
  bool isPromising;     /* the promise is being stored */
  byte stream = NOWHERE;
  bool hasFile;         /* the routes in force are stored, or being stored */
  bool isSaving;
  byte saving;
  /* On its disk. */
  byte disk = NONE;
  byte diskEpoch;       /* 0 if there is no file */
  bool isFull;
  /* At the API server: places with a write that the routes refuse by now, and those of a killed process. */
  byte writes;
  byte ghosts;
  /* Its pod: its object is deleted; its token is refused. */
  bool isRemoved;
  bool isOver;
  byte followed;        /* the last epoch of a promise that was given. For the checks, and for the passing of time */
};
Proxy px[2];

/* Two streams of each proxy: 0 and 1, 2 and 3. One end can be closed before the other end notices. */
typedef Stream {
  bool proxyEnd;
  bool managerEnd;
  byte manager;
  mtype stage;
  bool isLater;         /* it was opened after the other stream of its proxy */
  bool isLate;          /* its manager has registered a later one */
  byte acked;           /* the registration, from here on */
  byte doubt;
  bool isDoubtful;
  bool mayHoldMore;
  byte version;
  byte epoch;
};
Stream st[4];
chan up[4] = [3] of { mtype, byte };
chan down[4] = [3] of { mtype, byte, byte };

/* What a manager knows of a proxy. */
typedef Record {
  bool isKnown;         /* it has registered in this epoch */
  byte acked = NONE;
  byte doubt;
  bool isDoubtful;
  bool mayHoldMore;
  byte desired = NONE;  /* by the last plan; NONE without a plan */
  byte sent = NONE;     /* the update without an answer */
  byte version;         /* of the last update */
  byte stream = NOWHERE;
  mtype pod = THERE;
};
typedef Manager {
  bool leads;           /* it believes so */
  byte epoch;
  byte rules;           /* the rules that it has read */
  bool isBlind;         /* it does not know which pods were removed just before it led */
  Record rec[2];
};
Manager mg[2];

/* ---- What a proxy may write, as a manager sees it, and what follows. ---- */

#define Rec(m, p) mg[m].rec[p]
#define IsUnknown(m, p) (Rec(m, p).pod != FORGOTTEN && (!Rec(m, p).isKnown && !WithoutRule(15) || Rec(m, p).mayHoldMore))
#define Claims(m, p) ((Rec(m, p).acked | Rec(m, p).doubt | (WithoutRule(3) -> 0 : Rec(m, p).sent)) & EVERY)
/* What somebody else may write: everything, while a proxy has not said, since it may be of any subset. */
#define Others(m, p) ((mg[m].isBlind || IsUnknown(m, p) || IsUnknown(m, 1 - p)) -> EVERY : Claims(m, 1 - p))
/* A place that the proxy has acknowledged stays its place: nobody else can have got it since. */
#define Plan(m, p) (Wanted(p, mg[m].rules) & (Rec(m, p).acked | ~Others(m, p)))
#define NeedsPlan(m, p) (Rec(m, p).stream != NOWHERE && Rec(m, p).desired != Plan(m, p))
/* The update without an answer has become wrong: what was acknowledged is desired again. */
#define IsUndone(r) (r.sent != NONE && r.acked != NONE && !r.isDoubtful && r.desired == r.acked && r.sent != r.acked)
#define IsNews(r) (r.sent == NONE && (r.isDoubtful || r.mayHoldMore || r.desired != r.acked))
#define MaySend(r) (r.stream != NOWHERE && r.desired != NONE && len(down[r.stream]) < 3 && (IsNews(r) || IsUndone(r)))

inline wipe(s) {
  st[s].manager = 0; st[s].stage = 0; st[s].isLater = false; st[s].isLate = false; st[s].acked = 0; st[s].doubt = 0;
  st[s].isDoubtful = false; st[s].mayHoldMore = false; st[s].version = 0; st[s].epoch = 0;
}

inline closeManagerEnd(s) {
  do :: nempty(up[s]) -> up[s]?_,_ :: empty(up[s]) -> break od;
  st[s].managerEnd = false;
  if
  :: Rec(st[s].manager, s / 2).stream == s ->
    Rec(st[s].manager, s / 2).stream = NOWHERE; Rec(st[s].manager, s / 2).desired = NONE
  :: else
  fi;
  if :: !st[s].proxyEnd -> wipe(s) :: else fi
}

inline closeStreamsOf(m) {
  at = 0;
  do
  :: at < 4 -> if :: st[at].managerEnd && st[at].manager == m -> closeManagerEnd(at) :: else fi; at++
  :: else -> break
  od;
  at = 0
}

inline closeProxyEnd(p) {
  if
  :: px[p].stream != NOWHERE ->
    s = px[p].stream;
    do :: nempty(down[s]) -> down[s]?_,_,_ :: empty(down[s]) -> break od;
    st[s].proxyEnd = false; px[p].stream = NOWHERE; px[p].owed = 0; px[p].isPromising = false;
    if :: !st[s].managerEnd -> wipe(s) :: else fi
  :: else
  fi
}

inline forget(m, p) {
  Rec(m, p).isKnown = false; Rec(m, p).acked = NONE; Rec(m, p).doubt = 0; Rec(m, p).isDoubtful = false;
  Rec(m, p).mayHoldMore = false; Rec(m, p).sent = NONE; Rec(m, p).version = 0
}

/* The stored plan may be older than what the manager knows. At most one update is without an answer. */
inline sendNext(m, p) {
  if
  :: MaySend(Rec(m, p)) ->
    if
    :: Rec(m, p).sent != NONE && !WithoutRule(12) ->
      Rec(m, p).doubt = Rec(m, p).doubt | Rec(m, p).sent; Rec(m, p).isDoubtful = true
    :: else
    fi;
    Rec(m, p).sent = Rec(m, p).desired;
    Rec(m, p).version++;
    if :: st[Rec(m, p).stream].proxyEnd -> down[Rec(m, p).stream]!UPDATE, Rec(m, p).sent, Rec(m, p).version :: else fi
  :: else
  fi
}

/* ---- The manager's end of a stream. ---- */

proctype StreamEnd(byte i) {
end: do
  :: d_step { /* a registration arrives */
      st[i].managerEnd && st[i].stage == REGISTERS;
      at = st[i].manager;
      if
      :: mg[at].leads && Rec(at, i / 2).pod == THERE && (st[i].epoch <= mg[at].epoch || WithoutRule(4)) ->
        st[i].stage = PROMISES;
        if :: st[i].proxyEnd -> down[i]!WELCOME, 0, mg[at].epoch :: else fi
      :: else -> closeManagerEnd(i)
      fi }
  :: d_step { /* a promise arrives: only now the registration counts */
      st[i].managerEnd && up[i]?[PROMISE, _];
      up[i]?PROMISE, _;
      at = st[i].manager;
      if
      :: (st[i].isLate && !WithoutRule(10)) || Rec(at, i / 2).pod != THERE -> closeManagerEnd(i)
      :: else ->
        s = i ^ 1;
        if
        :: st[s].managerEnd && st[s].manager == at && st[i].isLater -> st[s].isLate = true
        :: else
        fi;
        if :: Rec(at, i / 2).stream == s -> closeManagerEnd(s) :: else fi;
        st[i].stage = SERVED;
        Rec(at, i / 2).isKnown = true;
        Rec(at, i / 2).acked = st[i].acked;
        Rec(at, i / 2).doubt = st[i].doubt;
        Rec(at, i / 2).isDoubtful = st[i].isDoubtful;
        Rec(at, i / 2).mayHoldMore = st[i].mayHoldMore;
        Rec(at, i / 2).version = (st[i].version > Rec(at, i / 2).version -> st[i].version : Rec(at, i / 2).version);
        Rec(at, i / 2).sent = NONE;
        Rec(at, i / 2).desired = NONE;
        Rec(at, i / 2).stream = i;
        st[i].acked = 0; st[i].doubt = 0; st[i].isDoubtful = false;
        st[i].mayHoldMore = false; st[i].version = 0; st[i].epoch = 0
      fi }
  :: d_step { /* an acknowledgement arrives: the proxy has these routes and no others */
      st[i].managerEnd && up[i]?[ACK, _];
      up[i]?ACK, s;
      at = st[i].manager;
      if
      :: Rec(at, i / 2).stream == i && Rec(at, i / 2).sent != NONE && Rec(at, i / 2).version == s ->
        Rec(at, i / 2).acked = Rec(at, i / 2).sent; Rec(at, i / 2).sent = NONE;
        Rec(at, i / 2).doubt = 0; Rec(at, i / 2).isDoubtful = false; Rec(at, i / 2).mayHoldMore = false;
        sendNext(at, i / 2)
      :: else
      fi }
  :: d_step { /* it notices that the proxy has closed the stream: messages on their way are lost */
      st[i].managerEnd && !st[i].proxyEnd;
      closeManagerEnd(i) }
  od
}

inline seeRemoval(m, p) {
  if :: Rec(m, p).stream != NOWHERE -> s = Rec(m, p).stream; closeManagerEnd(s) :: else fi;
  if :: WithoutRule(6) -> Rec(m, p).pod = FORGOTTEN; forget(m, p) :: else -> Rec(m, p).pod = GONE fi
}

#define IsUnseen(m, p) (Rec(m, p).pod == FORGOTTEN && px[p].isRemoved && !px[p].isOver)

proctype ManagerOf(byte m) {
end: do
  /* It reads the rules, late perhaps. */
  :: d_step { mg[m].rules != rules -> mg[m].rules = rules }
  /* It plans: fences what others may write, and grants what nobody else may write. */
  :: d_step { mg[m].leads && (NeedsPlan(m, 0) || NeedsPlan(m, 1)) ->
      Rec(m, 0).desired = (Rec(m, 0).stream == NOWHERE -> NONE : Plan(m, 0));
      Rec(m, 1).desired = (Rec(m, 1).stream == NOWHERE -> NONE : Plan(m, 1));
      sendNext(m, 0); sendNext(m, 1) }
  /* It notices that its lease is over. */
  :: d_step { mg[m].leads && mg[m].epoch < newest ->
      mg[m].leads = false; closeStreamsOf(m); forget(m, 0); forget(m, 1); mg[m].isBlind = false }
  :: d_step { px[0].isRemoved && Rec(m, 0).pod == THERE -> seeRemoval(m, 0) }
  :: d_step { px[1].isRemoved && Rec(m, 1).pod == THERE -> seeRemoval(m, 1) }
  /* ASSUMPTION: 12 s after it saw the removal, the pod's token is refused and its writes are over. */
  :: d_step { Rec(m, 0).pod == GONE && px[0].isOver -> Rec(m, 0).pod = FORGOTTEN; forget(m, 0) }
  :: d_step { Rec(m, 1).pod == GONE && px[1].isOver -> Rec(m, 1).pod = FORGOTTEN; forget(m, 1) }
  /* ASSUMPTION: after 12 s this is so for all pods whose removal it did not see. */
  :: d_step { mg[m].isBlind && !IsUnseen(m, 0) && !IsUnseen(m, 1) -> mg[m].isBlind = false }
  od
}

/* ---- A proxy. ---- */

#define IsInUse(s) (st[s].proxyEnd || st[s].managerEnd)
#define IsDetour(p, m) (mg[m].epoch < px[p].promised || Rec(m, p).pod != THERE)
/* ASSUMPTION: a process that does not know its promise waits for 15 s, and then no leader before it believes that it leads. */
#define MustWait(p) (px[p].hasForgotten && (IsBefore(p, 0) || IsBefore(p, 1)) && !WithoutRule(14) \
  && (!WithoutRule(17) || px[p].routes != NONE))
#define IsBefore(p, m) (mg[m].leads && mg[m].epoch < px[p].followed)
#define MayOpen(p, m) (!px[p].isOver && px[p].stream == NOWHERE && !(IsInUse(2 * p) && IsInUse(2 * p + 1)) \
  && mg[m].leads && !MustWait(p) && (!IsDetour(p, m) || detours > 0))

inline open(p, m) {
  if :: IsDetour(p, m) -> detours-- :: else fi;
  s = 2 * p + IsInUse(2 * p);
  st[s].proxyEnd = true; st[s].managerEnd = true; st[s].manager = m; st[s].stage = REGISTERS;
  st[s].isLater = true; st[s ^ 1].isLater = false;
  st[s].acked = px[p].acked;
  st[s].doubt = (WithoutRule(8) -> 0 : px[p].doubt); st[s].isDoubtful = px[p].isDoubtful && !WithoutRule(8);
  st[s].mayHoldMore = !px[p].isSettled && !WithoutRule(9);
  st[s].version = (WithoutRule(16) -> 0 : px[p].version); st[s].epoch = px[p].promised;
  px[p].stream = s
}

inline sayPromise(p) {
  assert(px[p].promised >= px[p].followed);
  px[p].followed = px[p].promised;
  s = px[p].stream;
  if :: st[s].managerEnd -> up[s]!PROMISE, 0 :: else fi
}

inline readWelcome(p) {
  s = px[p].stream;
  down[s]?WELCOME, _, at;
  if
  :: at >= px[p].promised || WithoutRule(4) -> 
    px[p].promised = at; px[p].isPromising = true; px[p].hasForgotten = false;
    if :: WithoutRule(5) -> sayPromise(p) :: else fi
  :: else -> closeProxyEnd(p)
  fi
}

inline givePromise(p) {
  if
  :: px[p].diskEpoch == px[p].promised
  :: else -> px[p].diskEpoch = (px[p].isFull -> (WithoutRule(18) -> px[p].diskEpoch : LOST) : px[p].promised)
  fi;
  px[p].isPromising = false;
  if :: !WithoutRule(5) -> sayPromise(p) :: else fi
}

inline takeUpdate(p) {
  s = px[p].stream;
  down[s]?UPDATE, at, s;
  if
  :: s > px[p].version ->
    px[p].version = s; px[p].owed = s; px[p].stage = DRAINING;
    if
    :: at != px[p].routes ->
      px[p].doubt = px[p].doubt | at; px[p].isDoubtful = true; px[p].hasFile = false;
      px[p].writes = (px[p].writes | px[p].routes) & ~at & EVERY;
      px[p].routes = at
    :: else
    fi
  :: else
  fi
}

inline acknowledge(p) {
  px[p].stage = HELD; px[p].acked = px[p].routes; px[p].doubt = 0; px[p].isDoubtful = false;
  assert(((px[p].writes | px[p].ghosts) & ~px[p].routes & EVERY) == 0);
  assert(px[p].disk == px[p].routes || px[p].disk == NONE);
  s = px[p].stream;
  if :: px[p].owed != 0 && st[s].managerEnd -> up[s]!ACK, px[p].owed :: else fi;
  px[p].owed = 0
}

inline restart(p, fromDisk) {
  closeProxyEnd(p);
  px[p].disk = fromDisk;
  px[p].routes = px[p].disk; px[p].acked = px[p].disk; px[p].version = 0; px[p].stage = HELD;
  px[p].doubt = 0; px[p].isDoubtful = false; px[p].hasFile = px[p].disk != NONE; px[p].isSaving = false;
  px[p].saving = 0; px[p].writes = 0;
  px[p].hasForgotten = px[p].diskEpoch == LOST;
  px[p].promised = (px[p].hasForgotten -> 0 : px[p].diskEpoch)
}

inline kill(p, fromDisk) {
  px[p].ghosts = (px[p].ghosts | px[p].writes | px[p].routes) & EVERY;
  restart(p, fromDisk);
  px[p].isSettled = (px[p].disk == NONE && px[p].diskEpoch == 0) || WithoutRule(7)
}

proctype ProxyOf(byte p) {
end: do
#if FULL > 0
  :: d_step { fulls > 0 && !px[p].isFull && !px[p].isOver && hasBegun -> fulls--; px[p].isFull = true }
  :: d_step { px[p].isFull -> px[p].isFull = false }
#endif
#if CRASH > 0
  :: d_step { crashes > 0 && !px[p].isOver && hasBegun -> crashes--; kill(p, px[p].disk) }
  :: d_step { crashes > 0 && px[p].isSaving && hasBegun -> crashes--; kill(p, px[p].saving) }
  :: d_step { crashes > 0 && px[p].writes == 0 && px[p].isSettled && !px[p].isSaving && !px[p].isOver && hasBegun ->
      crashes--; restart(p, px[p].disk) }
#endif
#if CUT > 0
  :: d_step { cuts > 0 && px[p].stream != NOWHERE && hasBegun -> cuts--; closeProxyEnd(p) }
#endif
#if REMOVAL > 0
  :: d_step { removals > 0 && !px[p].isRemoved && hasBegun -> removals--; px[p].isRemoved = true }
#endif
  :: d_step { MayOpen(p, 0) -> open(p, 0) }
  :: d_step { MayOpen(p, 1) -> open(p, 1) }
  :: d_step { px[p].stream != NOWHERE && down[px[p].stream]?[WELCOME, _, _] -> readWelcome(p) }
  /* The promise is stored, and then given. */
  :: d_step { px[p].isPromising -> givePromise(p) }
  :: d_step { px[p].stream != NOWHERE && down[px[p].stream]?[UPDATE, _, _] -> takeUpdate(p) }
  :: d_step { px[p].stream != NOWHERE && !st[px[p].stream].managerEnd -> closeProxyEnd(p) }
  /* The writes in flight end. They make a difference only since their places were taken away, so they begin there. */
  :: d_step { px[p].writes != 0 -> px[p].writes = 0 }
  /* ASSUMPTION: 10 s after its start, each write of the process before has taken effect or never will. */
  :: d_step { !px[p].isSettled -> px[p].isSettled = true; px[p].ghosts = 0 }
  :: d_step { px[p].stage == DRAINING && (px[p].writes == 0 || WithoutRule(2)) && px[p].isSettled -> px[p].stage = STORING }
  /* A save begins, and ends, perhaps when newer routes have come. */
  :: d_step { px[p].stage == STORING && !px[p].isSaving && !px[p].hasFile ->
      px[p].isSaving = true; px[p].saving = px[p].routes; px[p].hasFile = true }
  :: d_step { px[p].isSaving ->
      px[p].disk = (px[p].isFull -> (WithoutRule(13) -> px[p].disk : NONE) : px[p].saving);
      px[p].isSaving = false; px[p].saving = 0 }
  :: d_step { px[p].stage == STORING && (!px[p].isSaving && px[p].hasFile || WithoutRule(1)) -> acknowledge(p) }
  /* The token of a removed pod is refused, so it writes no more. */
  :: d_step { px[p].isRemoved && !px[p].isOver ->
      closeProxyEnd(p); px[p].isOver = true; px[p].disk = NONE; px[p].diskEpoch = 0; restart(p, NONE);
      px[p].ghosts = 0; px[p].isSettled = true; px[p].isFull = false }
  od
}

#define MayWrite(p) ((px[p].routes | px[p].writes | px[p].ghosts) & EVERY)
#define Leader (mg[0].epoch == newest -> 0 : 1)
#define IsRight(p) (px[p].isOver || px[p].routes == Wanted(p, rules) && px[p].stage == HELD \
  && Rec(Leader, p).acked == px[p].routes)

/* ---- What goes wrong, and what the rules ask for. ---- */

inline lead(m) {
  closeStreamsOf(m); forget(m, 0); forget(m, 1);
  if :: px[0].isRemoved -> Rec(m, 0).pod = FORGOTTEN :: else fi;
  if :: px[1].isRemoved -> Rec(m, 1).pod = FORGOTTEN :: else fi;
  newest++; mg[m].leads = true; mg[m].epoch = newest; mg[m].isBlind = !WithoutRule(11)
}

proctype World() {
#ifdef REST
  IsRight(0) && IsRight(1); /* nothing happens before both proxies are at rest */
#endif
  hasBegun = true;
end: do
  :: d_step { moves > 0 -> moves--; rules = rules ^ 1 }
#if PLACES > 1
  :: d_step { moves > 0 -> moves--; rules = rules ^ 2 }
#endif
  /* At any moment the faults may be over. */
  :: d_step { moves + detours + crashes + cuts + fulls + leads + removals > 0 ->
      moves = 0; detours = 0; crashes = 0; cuts = 0; fulls = 0; leads = 0; removals = 0 }
#if LEADER > 0
  :: d_step { leads > 0 -> leads--; lead(0) }
  :: d_step { leads > 0 -> leads--; lead(1) }
  :: d_step { leads > 0 -> leads--; lead(0); closeStreamsOf(1) }
  :: d_step { leads > 0 -> leads--; lead(1); closeStreamsOf(0) }
#endif
#if CUT > 0
  :: d_step { cuts > 0 && st[0].managerEnd -> cuts--; closeManagerEnd(0) }
  :: d_step { cuts > 0 && st[1].managerEnd -> cuts--; closeManagerEnd(1) }
  :: d_step { cuts > 0 && st[2].managerEnd -> cuts--; closeManagerEnd(2) }
  :: d_step { cuts > 0 && st[3].managerEnd -> cuts--; closeManagerEnd(3) }
#endif
  od
}

init {
  atomic {
    mg[0].leads = true; mg[0].epoch = 1;
    run ManagerOf(0); run ProxyOf(0); run ProxyOf(1);
    run StreamEnd(0); run StreamEnd(1); run StreamEnd(2); run StreamEnd(3); run World();
#if LEADER > 0
    run ManagerOf(1)
#endif
  }
  do
  /* Never two writers of one place. */
  :: d_step { (MayWrite(0) & MayWrite(1)) != 0 -> assert(false) }
  /* When nothing can happen any more: each place has its writer, and the leader knows it. */
  :: timeout -> assert(IsRight(0) && IsRight(1)); break
  od
}
