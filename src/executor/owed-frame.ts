/** The one frame a worker owes: whoever waits for it gets it, or learns why it will never come. */

import { ServiceError } from '../errors.ts'
import type { Ending } from './exit.ts'
import type { WorkerFrame } from './protocol.ts'

/** Frames that answer something the service sent, or, `ready`, the fork itself. */
export type OwedType = 'ready' | 'opened' | 'result' | 'value'
export type FrameOf<Type extends OwedType> = Extract<WorkerFrame, { type: Type }>

type Debt = { type: OwedType; id: number; settle: (frame: WorkerFrame) => void; lose: (ending: Ending) => void }

export class OwedFrame {
  #debt: Debt | undefined
  #lost: Ending | undefined

  /**
   * Wait for a frame; resolves with why it is lost once the worker is.
   *
   * @param id What the frame must carry; 0 for `ready`, which carries none.
   */
  wait<Type extends OwedType>(type: Type, id: number): Promise<FrameOf<Type> | Ending> {
    return new Promise(resolve => {
      if (this.#lost !== undefined) {
        resolve(this.#lost)
        return
      }
      const settle = (frame: WorkerFrame) => {
        if (isOf(frame, type)) resolve(frame)
      }
      this.#debt = { type, id, settle, lose: resolve }
    })
  }

  /** @throws {ServiceError} `protocol_violation` for a frame that nothing waits for. */
  settle(frame: WorkerFrame): void {
    const id = 'id' in frame ? frame.id : 0
    const debt = this.#debt
    if (debt === undefined || debt.type !== frame.type || debt.id !== id) {
      throw new ServiceError('protocol_violation', `the worker sent a ${frame.type} frame that nothing waits for`)
    }
    this.#debt = undefined
    debt.settle(frame)
  }

  /** The worker is gone; the first reason given stays. */
  lose(ending: Ending): void {
    this.#lost ??= ending
    const debt = this.#debt
    this.#debt = undefined
    debt?.lose(this.#lost)
  }
}

function isOf<Type extends OwedType>(frame: WorkerFrame, type: Type): frame is FrameOf<Type> {
  return frame.type === type
}
