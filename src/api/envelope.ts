/** The result of a reset or a step, as every transport sends it. */

import type { JsonObject, StepResult } from '../environment/environment.ts'

/** `observation`, `reward`, `done` and `metadata`, in this order on the wire. */
export type Envelope = { observation: JsonObject; reward: number | null; done: boolean; metadata: JsonObject }

/**
 * Wrap a result. Metadata goes out twice: old clients read it inside the
 * observation, new ones beside it. Both name the episode.
 *
 * @param episodeId Used where the environment doesn't name the episode itself.
 */
export function toEnvelope(result: StepResult, episodeId: string | null): Envelope {
  const metadata = { ...result.metadata, episode_id: result.metadata.episode_id ?? episodeId }
  return {
    observation: { ...result.observation, metadata },
    reward: result.reward,
    done: result.done,
    metadata,
  }
}
