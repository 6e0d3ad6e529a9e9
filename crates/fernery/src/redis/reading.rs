//! Reads the streams of a claim in order, and no more messages than the claim still needs.

use super::{RedisTransport, link, reply};
use fernery_core::StreamName;
use fernery_engine::transport::{Away, DEAD_LETTERS, Mail};
use redis::{Cmd, Value, cmd};
use std::sync::atomic::Ordering;

/// Reads the streams in order, from each only as many messages as the claim still needs. A stream that has lost its group gets
/// a new one that starts at its first message. A stream that does not exist is not created.
const READ: &str = r"
local found, anew, left = {}, {}, tonumber(ARGV[3])
for i, key in ipairs(KEYS) do
  left = left - tonumber(ARGV[3 + i])
  if left <= 0 then break end
  local read = function()
    return redis.pcall('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', left, 'STREAMS', key, '>')
  end
  local got = read()
  if got and got.err and string.find(got.err, 'NOGROUP', 1, true) and redis.call('EXISTS', key) == 1 then
    local made = redis.pcall('XGROUP', 'CREATE', key, ARGV[1], '0')
    if made.err then return redis.error_reply(made.err) end
    anew[#anew + 1] = i
    got = read()
  end
  if got and got.err then
    -- A stream that is not there, or a key that is no stream, has no messages; anything else is trouble.
    local none = string.find(got.err, 'NOGROUP', 1, true) or string.find(got.err, 'WRONGTYPE', 1, true)
    if not none then return redis.error_reply(got.err) end
  elseif got then
    found[#found + 1] = { i, got[1][2] }
    left = left - #got[1][2]
  end
end
return { found, anew }";

impl RedisTransport {
    pub(super) async fn read_streams(
        &self,
        streams: &[StreamName],
        in_hand: &[usize],
        max: usize,
    ) -> Result<Mail, Away> {
        let readable = streams.iter().zip(in_hand).filter(|(stream, _)| stream.as_str() != DEAD_LETTERS);
        let (streams, in_hand): (Vec<&StreamName>, Vec<usize>) = readable.unzip();
        let found = self.found(&streams, &in_hand, max).await;
        let (found, anew) = found.inspect_err(|_| {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
        })?;
        let stream = |n: usize| streams.get(n - 1).copied();
        let mut mail = Mail::default();
        for (n, entries) in found {
            self.counters.read.fetch_add(entries.len() as u64, Ordering::Relaxed);
            if let Some(stream) = stream(n) {
                mail.hints.extend(self.hints(stream, entries));
            }
        }
        mail.set_up_anew = anew.into_iter().filter_map(stream).cloned().collect();
        self.counters.set_up_anew.fetch_add(mail.set_up_anew.len() as u64, Ordering::Relaxed);
        Ok(mail)
    }

    async fn found(
        &self,
        streams: &[&StreamName],
        in_hand: &[usize],
        max: usize,
    ) -> Result<reply::Found, Away> {
        if let ([stream], [in_hand]) = (streams, in_hand)
            && max > *in_hand
        {
            // Nearly always there is only one stream, and it has its group: that needs no script.
            let answer = self.answer(&self.read_one(stream, max - in_hand)).await?;
            if let Some(entries) = reply::read_one(answer)? {
                self.link.reads(None);
                return Ok((vec![(1, entries)], Vec::new()));
            }
        }
        let read = reply::read(self.answer(&self.read_all(streams, in_hand, max)).await?);
        self.link.reads(read.as_ref().err().map(|Away(why)| why.clone()));
        read
    }

    async fn answer(&self, command: &Cmd) -> Result<Option<Value>, Away> {
        let mut commands = link::commands();
        commands.add_command(command.clone());
        Ok(self.link.ask(&commands).await?.into_iter().next())
    }

    fn read_one(&self, stream: &StreamName, count: usize) -> Cmd {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(&self.group).arg(&self.consumer).arg("COUNT").arg(count);
        read.arg("STREAMS").arg(stream.as_str()).arg(">");
        read
    }

    fn read_all(&self, streams: &[&StreamName], in_hand: &[usize], max: usize) -> Cmd {
        let mut script = cmd("EVAL");
        script.arg(READ).arg(streams.len());
        streams.iter().for_each(|stream| {
            script.arg(stream.as_str());
        });
        script.arg(&self.group).arg(&self.consumer).arg(max).arg(in_hand);
        script
    }
}
